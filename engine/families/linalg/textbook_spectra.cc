#include "engine/families/linalg/textbook_spectra.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/families/linalg/textbook_factorizations.h"

namespace tensord {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kMaxSweeps = 60;
constexpr int kMaxStepsOfValue = 60;

// Returns a factor that brings the largest entry near 1, so that squares neither overflow nor vanish.
double ScaleOf(const HostMatrix& a) {
  double largest = 0;
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) {
      largest = std::max({largest, std::abs(a(i, j).real()), std::abs(a(i, j).imag())});
    }
  }
  return largest == 0 ? 1 : std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1022, 1022));
}

HostMatrix Scaled(HostMatrix a, double scale) {
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) a(i, j) *= scale;
  }
  return a;
}

// The rotation that makes [[alpha, gamma], [conj(gamma), beta]] diagonal: columns (p, q) become
// (c p - s conj(phase) q, s phase p + c q).
struct Rotation {
  double c;
  double s;
  Complex128 phase;
};

Rotation RotationFor(double alpha, double beta, Complex128 gamma) {
  const double modulus = std::abs(gamma);
  const double zeta = (beta - alpha) / (2 * modulus);
  const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
  const double c = 1 / std::hypot(1.0, t);
  return {.c = c, .s = c * t, .phase = gamma / modulus};
}

void RotateColumns(const Rotation& r, int64_t p, int64_t q, HostMatrix* m) {
  for (int64_t i = 0; i < m->rows(); ++i) {
    const Complex128 x = (*m)(i, p), y = (*m)(i, q);
    (*m)(i, p) = r.c * x - r.s * std::conj(r.phase) * y;
    (*m)(i, q) = r.s * r.phase * x + r.c * y;
  }
}

void RotateRows(const Rotation& r, int64_t p, int64_t q, HostMatrix* m) {
  for (int64_t j = 0; j < m->columns(); ++j) {
    const Complex128 x = (*m)(p, j), y = (*m)(q, j);
    (*m)(p, j) = r.c * x - r.s * r.phase * y;
    (*m)(q, j) = r.s * std::conj(r.phase) * x + r.c * y;
  }
}

template <typename Before>
std::vector<int64_t> SortedIndices(int64_t count, const Before& before) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

HostMatrix TakeColumns(const HostMatrix& m, const std::vector<int64_t>& order) {
  HostMatrix taken(m.rows(), static_cast<int64_t>(order.size()));
  for (int64_t j = 0; j < taken.columns(); ++j) {
    for (int64_t i = 0; i < m.rows(); ++i) taken(i, j) = m(i, order[static_cast<size_t>(j)]);
  }
  return taken;
}

double Length(const HostMatrix& m, int64_t column) {
  double length = 0;
  for (int64_t i = 0; i < m.rows(); ++i) length = std::hypot(length, std::abs(m(i, column)));
  return length;
}

// Makes the columns orthogonal, and turns the columns of `v` alike. Columns that are rounding errors of the others are
// left: their directions say nothing.
bool Orthogonalize(HostMatrix* a, HostMatrix* v) {
  double norm = 0;
  for (int64_t j = 0; j < a->columns(); ++j) norm = std::hypot(norm, Length(*a, j));
  const double rounding = kEpsilon * norm, angle = kEpsilon * static_cast<double>(a->rows());
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p + 1 < a->columns(); ++p) {
      for (int64_t q = p + 1; q < a->columns(); ++q) {
        double alpha = 0, beta = 0;
        Complex128 gamma = 0;
        for (int64_t i = 0; i < a->rows(); ++i) {
          alpha += std::norm((*a)(i, p));
          beta += std::norm((*a)(i, q));
          gamma += std::conj((*a)(i, p)) * (*a)(i, q);
        }
        if (std::min(alpha, beta) <= rounding * rounding || std::abs(gamma) <= angle * std::sqrt(alpha * beta))
          continue;
        const Rotation rotation = RotationFor(alpha, beta, gamma);
        RotateColumns(rotation, p, q, a);
        RotateColumns(rotation, p, q, v);
        turned = true;
      }
    }
    if (!turned) return true;
  }
  return false;
}

// Completes columns to a square unitary matrix. The given columns are orthonormal, but for those that are zero.
HostMatrix Completed(const HostMatrix& columns, const std::vector<bool>& is_zero) {
  const int64_t m = columns.rows();
  HostMatrix u(m, m);
  std::vector<int64_t> missing, done;
  for (int64_t j = 0; j < m; ++j) {
    if (j >= columns.columns() || is_zero[static_cast<size_t>(j)]) {
      missing.push_back(j);
      continue;
    }
    for (int64_t i = 0; i < m; ++i) u(i, j) = columns(i, j);
    done.push_back(j);
  }
  // The last columns of the square Q of the given columns span the rest.
  const HostMatrix q = FactorQr(TakeColumns(u, done)).q;
  for (size_t k = 0; k < missing.size(); ++k) {
    for (int64_t i = 0; i < m; ++i) u(i, missing[k]) = q(i, static_cast<int64_t>(done.size() + k));
  }
  return u;
}

std::optional<SingularValues> DecomposeTall(const HostMatrix& a) {
  const double scale = ScaleOf(a);
  const int64_t n = a.columns();
  HostMatrix work = Scaled(a, scale), v = HostMatrix::Identity(n, n);
  if (!Orthogonalize(&work, &v)) return std::nullopt;
  std::vector<double> lengths;
  for (int64_t j = 0; j < n; ++j) lengths.push_back(Length(work, j));
  const auto length = [&](int64_t j) { return lengths[static_cast<size_t>(j)]; };
  const std::vector<int64_t> order = SortedIndices(n, [&](int64_t x, int64_t y) { return length(x) > length(y); });
  SingularValues result;
  result.vh = TakeColumns(v, order).Adjoint();
  HostMatrix u = TakeColumns(work, order);
  std::vector<bool> is_zero;
  const double largest = n == 0 ? 0 : length(order[0]);
  for (int64_t j = 0; j < n; ++j) {
    const double s = length(order[static_cast<size_t>(j)]);
    result.s.push_back(s / scale);
    // The rest of a column that depends on others has no direction of its own.
    is_zero.push_back(s <= largest * kEpsilon * static_cast<double>(a.rows()));
    for (int64_t i = 0; i < u.rows() && !is_zero.back(); ++i) u(i, j) /= s;
  }
  result.u = Completed(u, is_zero);
  return result;
}

double OffDiagonal(const HostMatrix& a) {
  double sum = 0;
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) sum += i == j ? 0 : std::norm(a(i, j));
  }
  return std::sqrt(sum);
}

// Applies the unitary matrix [[c, s], [-conj(s), c]] to rows (p, p + 1), and its adjoint to columns.
struct Givens {
  double c = 1;
  Complex128 s = 0;

  // Brings (x, y) to (r, 0).
  static Givens Zeroing(Complex128 x, Complex128 y) {
    const double r = std::hypot(std::abs(x), std::abs(y));
    if (r == 0) return {};
    if (x == 0.0) return {.c = 0, .s = std::conj(y) / std::abs(y)};
    return {.c = std::abs(x) / r, .s = x / std::abs(x) * std::conj(y) / r};
  }
  void ApplyToRows(int64_t p, int64_t first_column, HostMatrix* m) const {
    for (int64_t j = first_column; j < m->columns(); ++j) {
      const Complex128 x = (*m)(p, j), y = (*m)(p + 1, j);
      (*m)(p, j) = c * x + s * y;
      (*m)(p + 1, j) = -std::conj(s) * x + c * y;
    }
  }
  void ApplyToColumns(int64_t p, int64_t rows, HostMatrix* m) const {
    for (int64_t i = 0; i < rows; ++i) {
      const Complex128 x = (*m)(i, p), y = (*m)(i, p + 1);
      (*m)(i, p) = c * x + std::conj(s) * y;
      (*m)(i, p + 1) = -s * x + c * y;
    }
  }
};

// Brings A to Hessenberg form by Givens rotations, and turns the columns of z alike.
void ReduceToHessenberg(HostMatrix* a, HostMatrix* z) {
  for (int64_t k = 0; k + 2 < a->columns(); ++k) {
    for (int64_t i = a->rows() - 2; i > k; --i) {
      const Givens givens = Givens::Zeroing((*a)(i, k), (*a)(i + 1, k));
      givens.ApplyToRows(i, k, a);
      (*a)(i + 1, k) = 0;
      givens.ApplyToColumns(i, a->rows(), a);
      givens.ApplyToColumns(i, z->rows(), z);
    }
  }
}

// Returns the eigenvalue of the last 2×2 block of [.., end) that is nearer to its last entry (Wilkinson).
Complex128 ShiftOf(const HostMatrix& h, int64_t end, int step) {
  const Complex128 a = h(end - 2, end - 2), b = h(end - 2, end - 1), c = h(end - 1, end - 2), d = h(end - 1, end - 1);
  if (step % 10 == 9) return d + std::abs(c);  // leaves a cycle
  const Complex128 half = (a - d) / 2.0, root = std::sqrt(half * half + b * c);
  const Complex128 divisor = std::norm(half + root) > std::norm(half - root) ? half + root : half - root;
  return divisor == 0.0 ? d : d - b * c / divisor;
}

// Brings a Hessenberg matrix to triangular form.
bool ReduceToTriangle(HostMatrix* h, HostMatrix* z) {
  const auto is_small = [&](int64_t i) {  // h(i, i - 1)
    const double neighbours = std::abs((*h)(i, i)) + std::abs((*h)(i - 1, i - 1));
    return std::abs((*h)(i, i - 1)) <= kEpsilon * (neighbours == 0 ? 1 : neighbours);
  };
  int step = 0;
  for (int64_t end = h->rows(); end > 1;) {
    int64_t begin = end - 1;
    while (begin > 0 && !is_small(begin)) --begin;
    if (begin > 0) (*h)(begin, begin - 1) = 0;
    if (begin == end - 1) {
      --end;
      step = 0;
      continue;
    }
    if (++step > kMaxStepsOfValue) return false;
    const Complex128 shift = ShiftOf(*h, end, step);
    for (int64_t i = begin; i < end; ++i) (*h)(i, i) -= shift;
    std::vector<Givens> rotations;
    for (int64_t i = begin; i + 1 < end; ++i) {
      rotations.push_back(Givens::Zeroing((*h)(i, i), (*h)(i + 1, i)));
      rotations.back().ApplyToRows(i, i, h);
    }
    for (int64_t i = begin; i + 1 < end; ++i) {
      const Givens& rotation = rotations[static_cast<size_t>(i - begin)];
      rotation.ApplyToColumns(i, std::min(i + 2, end), h);
      rotation.ApplyToColumns(i, z->rows(), z);
    }
    for (int64_t i = begin; i < end; ++i) (*h)(i, i) += shift;
  }
  return true;
}

// Returns the vector of the triangle's k-th value, by back substitution.
std::vector<Complex128> VectorOf(const HostMatrix& t, int64_t k, double smallest) {
  std::vector<Complex128> x(static_cast<size_t>(k + 1));
  x[static_cast<size_t>(k)] = 1;
  for (int64_t i = k - 1; i >= 0; --i) {
    Complex128 sum = 0;
    for (int64_t j = i + 1; j <= k; ++j) sum += t(i, j) * x[static_cast<size_t>(j)];
    Complex128 gap = t(k, k) - t(i, i);
    if (std::abs(gap) < smallest) gap = smallest;
    x[static_cast<size_t>(i)] = sum / gap;
    // Equal values can make the vector grow; only its direction counts.
    const double size = std::abs(x[static_cast<size_t>(i)]);
    if (size > 1e100) {
      for (Complex128& value : x) value /= size;
    }
  }
  return x;
}

void Normalize(int64_t column, HostMatrix* m) {
  const double length = Length(*m, column);
  int64_t largest = 0;
  for (int64_t i = 0; i < m->rows(); ++i) {
    if (std::abs((*m)(i, column)) > std::abs((*m)(largest, column))) largest = i;
  }
  const Complex128 phase = std::conj((*m)(largest, column)) / std::abs((*m)(largest, column));
  for (int64_t i = 0; i < m->rows(); ++i) (*m)(i, column) *= phase / length;
}

}  // namespace

std::optional<SingularValues> DecomposeSingular(const HostMatrix& a) {
  if (a.rows() >= a.columns()) return DecomposeTall(a);
  std::optional<SingularValues> wide = DecomposeTall(a.Adjoint());
  if (!wide.has_value()) return std::nullopt;
  HostMatrix u = wide->vh.Adjoint();
  wide->vh = wide->u.Adjoint();
  wide->u = std::move(u);
  return wide;
}

std::optional<HermitianEigen> DecomposeHermitian(const HostMatrix& lower) {
  const int64_t n = lower.rows();
  HostMatrix a = lower, vectors = HostMatrix::Identity(n, n);
  for (int64_t j = 0; j < n; ++j) {
    a(j, j) = a(j, j).real();
    for (int64_t i = 0; i < j; ++i) a(i, j) = std::conj(a(j, i));
  }
  const double scale = ScaleOf(a);
  a = Scaled(std::move(a), scale);
  bool converged = false;
  for (int sweep = 0; sweep < kMaxSweeps && !converged; ++sweep) {
    converged = true;
    for (int64_t p = 0; p + 1 < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double limit = kEpsilon * std::min(std::abs(a(p, p)), std::abs(a(q, q)));
        if (std::abs(a(p, q)) <= std::max(limit, 1e-290)) continue;
        const Rotation rotation = RotationFor(a(p, p).real(), a(q, q).real(), a(p, q));
        RotateColumns(rotation, p, q, &a);
        RotateRows(rotation, p, q, &a);
        RotateColumns(rotation, p, q, &vectors);
        a(p, q) = a(q, p) = 0;
        converged = false;
      }
    }
  }
  if (!converged && OffDiagonal(a) > kEpsilon) return std::nullopt;
  const std::vector<int64_t> order =
      SortedIndices(n, [&](int64_t x, int64_t y) { return a(x, x).real() < a(y, y).real(); });
  HermitianEigen result{.vectors = TakeColumns(vectors, order)};
  for (int64_t i : order) result.values.push_back(a(i, i).real() / scale);
  return result;
}

std::optional<GeneralEigen> DecomposeGeneral(const HostMatrix& a) {
  const int64_t n = a.rows();
  const double scale = ScaleOf(a);
  HostMatrix t = Scaled(a, scale), z = HostMatrix::Identity(n, n);
  ReduceToHessenberg(&t, &z);
  if (!ReduceToTriangle(&t, &z)) return std::nullopt;
  GeneralEigen result{.vectors = HostMatrix(n, n)};
  for (int64_t k = 0; k < n; ++k) {
    result.values.push_back(t(k, k) / scale);
    const std::vector<Complex128> x = VectorOf(t, k, kEpsilon);
    for (int64_t j = 0; j <= k; ++j) {
      for (int64_t i = 0; i < n; ++i) result.vectors(i, k) += z(i, j) * x[static_cast<size_t>(j)];
    }
    Normalize(k, &result.vectors);
  }
  return result;
}

}  // namespace tensord
