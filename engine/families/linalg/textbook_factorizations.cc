#include "engine/families/linalg/textbook_factorizations.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tensord {
namespace {

double Magnitude(Complex128 z) { return std::abs(z.real()) + std::abs(z.imag()); }

void SwapRows(HostMatrix* matrix, int64_t a, int64_t b) {
  for (int64_t j = 0; j < matrix->columns(); ++j) std::swap((*matrix)(a, j), (*matrix)(b, j));
}

// m -= tau · v · (v^H · m) from a row and a column on; v starts at that row with a one.
void Reflect(const std::vector<Complex128>& v, Complex128 tau, int64_t row, int64_t column, HostMatrix* m) {
  for (int64_t j = column; j < m->columns(); ++j) {
    Complex128 sum = 0;
    for (size_t i = 0; i < v.size(); ++i) sum += std::conj(v[i]) * (*m)(row + static_cast<int64_t>(i), j);
    for (size_t i = 0; i < v.size(); ++i) (*m)(row + static_cast<int64_t>(i), j) -= tau * v[i] * sum;
  }
}

}  // namespace

CholeskyFactor FactorCholesky(const HostMatrix& a) {
  const int64_t n = a.rows();
  CholeskyFactor factor{.lower = HostMatrix(n, n), .pivot = std::nullopt};
  HostMatrix& l = factor.lower;
  for (int64_t j = 0; j < n; ++j) {
    double pivot = a(j, j).real();
    for (int64_t k = 0; k < j; ++k) pivot -= std::norm(l(j, k));
    if (!(pivot > 0)) {
      factor.pivot = j;
      return factor;
    }
    const double root = std::sqrt(pivot);
    l(j, j) = root;
    for (int64_t i = j + 1; i < n; ++i) {
      Complex128 sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= l(i, k) * std::conj(l(j, k));
      l(i, j) = sum / root;
    }
  }
  return factor;
}

std::optional<int64_t> LuFactors::ZeroPivot() const {
  for (int64_t i = 0; i < packed.rows(); ++i) {
    if (packed(i, i) == 0.0) return i;
  }
  return std::nullopt;
}

LuFactors FactorLu(const HostMatrix& a) {
  LuFactors lu{.packed = a, .order = std::vector<int64_t>(static_cast<size_t>(a.rows()))};
  std::iota(lu.order.begin(), lu.order.end(), 0);
  HostMatrix& p = lu.packed;
  for (int64_t k = 0; k < std::min(p.rows(), p.columns()); ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < p.rows(); ++i) {
      if (Magnitude(p(i, k)) > Magnitude(p(pivot, k))) pivot = i;
    }
    if (p(pivot, k) == 0.0) continue;
    if (pivot != k) {
      SwapRows(&p, k, pivot);
      std::swap(lu.order[static_cast<size_t>(k)], lu.order[static_cast<size_t>(pivot)]);
      lu.parity = -lu.parity;
    }
    for (int64_t i = k + 1; i < p.rows(); ++i) p(i, k) /= p(k, k);
    for (int64_t j = k + 1; j < p.columns(); ++j) {
      for (int64_t i = k + 1; i < p.rows(); ++i) p(i, j) -= p(i, k) * p(k, j);
    }
  }
  return lu;
}

HostMatrix SolveLu(const LuFactors& lu, const HostMatrix& b) {
  HostMatrix permuted(b.rows(), b.columns());
  for (int64_t j = 0; j < b.columns(); ++j) {
    for (int64_t i = 0; i < b.rows(); ++i) permuted(i, j) = b(lu.order[static_cast<size_t>(i)], j);
  }
  HostMatrix half = SolveTriangle(lu.packed, /*lower=*/true, /*unit_diagonal=*/true, std::move(permuted));
  return SolveTriangle(lu.packed, /*lower=*/false, /*unit_diagonal=*/false, std::move(half));
}

Reflectors FactorReflectors(const HostMatrix& a) {
  const int64_t m = a.rows(), n = a.columns();
  Reflectors factors{.packed = a, .tau = {}};
  HostMatrix& p = factors.packed;
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    const Complex128 alpha = p(k, k);
    double below = 0;
    for (int64_t i = k + 1; i < m; ++i) below = std::hypot(below, std::abs(p(i, k)));
    if (below == 0 && alpha.imag() == 0) {
      factors.tau.push_back(0);
      continue;
    }
    const double beta = -std::copysign(std::hypot(std::abs(alpha), below), alpha.real());
    std::vector<Complex128> v = {1};
    for (int64_t i = k + 1; i < m; ++i) v.push_back(p(i, k) / (alpha - beta));
    factors.tau.push_back((beta - alpha) / beta);
    // The factorization applies the adjoint of the reflector that Q is a product of.
    Reflect(v, std::conj(factors.tau.back()), k, k + 1, &p);
    p(k, k) = beta;
    for (int64_t i = k + 1; i < m; ++i) p(i, k) = v[static_cast<size_t>(i - k)];
  }
  return factors;
}

QrFactors FactorQr(const HostMatrix& a) {
  const int64_t m = a.rows(), n = a.columns();
  const Reflectors reflectors = FactorReflectors(a);
  QrFactors qr{.q = HostMatrix::Identity(m, m), .r = reflectors.packed};
  for (int64_t k = static_cast<int64_t>(reflectors.tau.size()) - 1; k >= 0; --k) {
    std::vector<Complex128> v = {1};
    for (int64_t i = k + 1; i < m; ++i) v.push_back(reflectors.packed(i, k));
    Reflect(v, reflectors.tau[static_cast<size_t>(k)], k, 0, &qr.q);
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j + 1; i < m; ++i) qr.r(i, j) = 0;
  }
  return qr;
}

HostMatrix SolveTriangle(const HostMatrix& t, bool lower, bool unit_diagonal, HostMatrix b) {
  const int64_t n = t.rows();
  for (int64_t j = 0; j < b.columns(); ++j) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = lower ? step : n - 1 - step;
      if (!unit_diagonal) b(i, j) /= t(i, i);
      for (int64_t k = lower ? i + 1 : 0; k < (lower ? n : i); ++k) b(k, j) -= t(k, i) * b(i, j);
    }
  }
  return b;
}

}  // namespace tensord
