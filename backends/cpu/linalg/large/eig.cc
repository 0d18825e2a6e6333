#include "backends/cpu/linalg/large/eig.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/general_steps.h"
#include "backends/cpu/linalg/lapack/number_parts.h"
#include "backends/cpu/matmul/blas_products.h"
#include "engine/base/stop_signal.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kEigChunk = 64;            // vectors that are written together
constexpr int64_t kEigProductColumns = 256;  // that are multiplied together

// Vectors that are solved for together: some tenths of a second at most.
template <typename T>
int64_t SolvedTogether(int64_t n) {
  constexpr int64_t kSolveWork = int64_t{1} << 28;  // rows times columns times vectors: at 2,000 rows 64 vectors, .35 s
  return std::clamp<int64_t>(kSolveWork / (lapack::kIsComplex<T> ? 4 : 1) / (n * n), 8, kEigChunk);
}

// Many numbers of single precision leave little of it when they are added up in it.
template <typename R>
double SquareSum(const std::complex<R>* x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double real = x[i].real(), imaginary = x[i].imag();
    sum += real * real + imaginary * imaginary;
  }
  return sum;
}

// Returns the scale for numbers that are to be balanced: the largest may become no larger than balancing allows, and no
// small number beside it vanishes without need.
template <typename T>
lapack::Real<T> ScaleToBalance(lapack::Real<T> largest) {
  constexpr int kMost = Balancing<T>::MostExponent();
  if (largest == 0) return 1;
  const int exponent = std::ilogb(largest) + 2;
  return std::ldexp(lapack::Real<T>(1), exponent > kMost ? kMost - exponent : std::clamp(-exponent, 0, kMost));
}

template <typename T>
void Rescale(lapack::Real<T> scale, int64_t count, T* numbers) {
  if (scale == 1) return;
  std::transform(numbers, numbers + count, numbers, [scale](T x) { return x * scale; });
}

// Returns the product of the unitary matrix and some of the triangle's vectors, which are zero below their diagonal.
MatrixProduct ProductFrom(int64_t n, int64_t first, int64_t columns) {
  const MatrixStrides strides{.row_stride = 1, .column_stride = n};
  const int64_t end = std::min(n, first + columns);
  // The second of two conjugates may be in the next product.
  return {.m = n, .n = end - first, .k = std::min(n, end + 1), .a = strides, .b = strides, .c_column_stride = n};
}

// Scales the vector to unit length and makes its largest number real.
template <typename R>
void Normalize(int64_t n, std::complex<R>* x, bool is_real) {
  const R largest = LargestOf(x, n);
  if (!(largest > 0)) return;
  for (int64_t i = 0; i < n; ++i) x[i] /= largest;  // so that squares are numbers
  std::complex<R> scale = static_cast<R>(1 / std::sqrt(SquareSum(x, n)));
  int64_t at = 0;
  double most = 0;
  for (int64_t i = 0; !is_real && i < n; ++i) {
    const double size = SquareSum(x + i, 1);
    if (size > most) {
      most = size;
      at = i;
    }
  }
  if (!is_real) scale *= std::conj(x[at]) / std::abs(x[at]);
  for (int64_t i = 0; i < n; ++i) x[i] = Multiply(x[i], scale);
  if (!is_real) x[at] = x[at].real();
}

}  // namespace

template <typename T>
LargeEig<T>::LargeEig(int64_t n, bool has_vectors) : n_(n), balancing_(n), hessenberg_(n), schur_(n) {
  a_ = layout_.Add<T>(n * n);
  places_ = layout_.Add<int64_t>(n);
  scales_ = layout_.Add<R>(n);
  counts_ = layout_.Add<int64_t>(2 * n);
  tau_ = layout_.Add<T>(n);
  values_ = layout_.Add<T>(n);
  imaginary_parts_ = layout_.Add<T>(n);
  // The steps follow each other.
  int64_t work_bytes = std::max(hessenberg_.scratch_bytes(), schur_.scratch_bytes());
  if (has_vectors) {
    q_ = BlockReflectors(
        kDTypeOf<T>,
        {.length = n - 1, .count = n - 1, .others = n - 1, .starts_as_identity = true, .v_leading = n, .c_leading = n});
    work_bytes = std::max(work_bytes, q_.scratch_bytes());
    for (int64_t first = 0; !lapack::kIsComplex<T> && first < n; first += kEigProductColumns) {
      products_.emplace_back(kDTypeOf<T>, ProductFrom(n, first, kEigProductColumns));
      work_bytes = std::max(work_bytes, products_.back().scratch_bytes());
    }
    z_ = layout_.Add<T>(n * n);
    solved_ = layout_.Add<T>(n * n);
    selected_ = layout_.Add<lapack_logical>(n);
    solve_work_ = layout_.Add<T>(3 * n);
    real_work_ = layout_.Add<R>(n);
  }
  work_ = layout_.Add<char>(work_bytes);
}

// Makes the unitary matrix of the reflectors. Rows that were in their places have none: their tau is 0.
template <typename T>
void LargeEig<T>::MakeUnitary(const T* reduced, const T* tau, T* z, char* scratch, ThreadPool& pool) const {
  std::fill_n(z, n_ * n_, T(0));
  SetDiagonal(n_, n_, T(1), z);
  q_.Apply(reduced + 1, tau, z + n_ + 1, scratch + work_, pool);
}

// Conjugates are solved for together.
template <typename T>
int64_t LargeEig<T>::ChunkEnd(int64_t begin, const Spectrum& spectrum) const {
  const int64_t end = std::min(n_, begin + SolvedTogether<T>(n_));
  if (lapack::kIsComplex<T> || end == n_) return end;
  return spectrum.triangle[(end - 1) * n_ + end] == T(0) ? end : end + 1;
}

// Eigenvectors of the triangle.
template <typename T>
void LargeEig<T>::SolveChunk(int64_t begin, int64_t end, const Spectrum& spectrum, T* solved, char* scratch) const {
  lapack_logical* const selected = reinterpret_cast<lapack_logical*>(scratch + selected_);
  std::fill_n(selected, n_, 0);
  std::fill_n(selected + begin, end - begin, 1);
  lapack::Trevc(static_cast<lapack_int>(n_), selected, spectrum.triangle, static_cast<lapack_int>(end - begin),
                solved + begin * n_, reinterpret_cast<T*>(scratch + solve_work_),
                reinterpret_cast<R*>(scratch + real_work_));
}

// Z times the triangle's vectors; false if the work is to be left.
template <typename T>
bool LargeEig<T>::MultiplyVectors(const T* z, const T* solved, T* vectors, char* scratch, ThreadPool& pool) const {
  if (lapack::kIsComplex<T>) {
    return pool.ParallelForBlocks(n_, kEigChunk, [&](int64_t begin, int64_t end) {
      BlasMatrixMatrix(kDTypeOf<T>, ProductFrom(n_, begin, end - begin), z, solved + begin * n_, vectors + begin * n_);
    });
  }
  for (size_t i = 0; i < products_.size(); ++i) {
    const int64_t place = static_cast<int64_t>(i) * kEigProductColumns * n_;
    products_[i].Run(z, solved + place, vectors + place, scratch, /*accumulates=*/false, pool);
    if (StopRequested()) return false;
  }
  return true;
}

// Eigenvectors of the matrix. For conjugates, of which the one above the real axis is the first, its vector's parts lie
// in two columns; they belong to the chunk with the first.
template <typename T>
void LargeEig<T>::WriteChunk(int64_t begin, int64_t end, const Spectrum& spectrum,
                             const typename Balancing<T>::Range& range, C* vectors, char* scratch) const {
  const R* const scales = reinterpret_cast<const R*>(scratch + scales_);
  const int64_t* const places = reinterpret_cast<const int64_t*>(scratch + places_);
  for (int64_t j = begin; j < end; ++j) {
    C* const column = vectors + j * n_;
    const T* const from = spectrum.triangle + j * n_;
    bool is_real = false, is_pair = false;
    if constexpr (lapack::kIsComplex<T>) {
      std::copy_n(from, n_, column);
    } else {
      if (spectrum.imaginary_parts[j] < 0) continue;
      is_pair = spectrum.imaginary_parts[j] > 0;
      is_real = !is_pair;
      for (int64_t i = 0; i < n_; ++i) column[i] = C(from[i], is_pair ? from[n_ + i] : T(0));
    }
    balancing_.Undo(range, places, scales, column);
    Normalize(n_, column, is_real);
    if (!is_pair) continue;
    std::transform(column, column + n_, column + n_, [](C x) { return std::conj(x); });
  }
}

template <typename T>
int64_t LargeEig<T>::Run(const T* a, C* values, C* vectors, char* scratch, ThreadPool& pool) const {
  const auto at = [&](int64_t place) { return reinterpret_cast<T*>(scratch + place); };
  T *const h = at(a_), *const tau = at(tau_);
  const Spectrum spectrum{.triangle = h,
                          .z = vectors == nullptr ? nullptr : at(z_),
                          .values = at(values_),
                          .imaginary_parts = at(imaginary_parts_)};
  const R scale_to_balance = ScaleToBalance<T>(LargestOf(a, n_ * n_));
  std::copy_n(a, n_ * n_, h);
  Rescale(scale_to_balance, n_ * n_, h);
  const auto range =
      balancing_.Balance(h, reinterpret_cast<int64_t*>(scratch + places_), reinterpret_cast<R*>(scratch + scales_),
                         reinterpret_cast<int64_t*>(scratch + counts_));
  if (StopRequested()) return 0;
  const R scale = ScaleToOrdinary(LargestOf(h, n_ * n_));
  Rescale(scale, n_ * n_, h);
  hessenberg_.Run(range.first, range.end, h, tau, scratch + work_, pool);
  if (StopRequested()) return 0;
  if (vectors != nullptr) MakeUnitary(h, tau, spectrum.z, scratch, pool);
  for (int64_t j = 0; j + 2 < n_; ++j) std::fill(h + j * n_ + j + 2, h + (j + 1) * n_, T(0));
  if (const int64_t info =
          schur_.Run(range.first, range.end, h, spectrum.z, spectrum.values, spectrum.imaginary_parts, scratch + work_);
      info != 0) {
    return info;
  }
  for (int64_t j = 0; j < n_; ++j) {
    if constexpr (lapack::kIsComplex<T>) {
      values[j] = spectrum.values[j] / scale / scale_to_balance;
    } else {
      values[j] =
          C(spectrum.values[j] / scale / scale_to_balance, spectrum.imaginary_parts[j] / scale / scale_to_balance);
    }
  }
  if (vectors == nullptr) return 0;
  T* const solved = at(solved_);
  for (int64_t begin = 0; begin < n_;) {
    if (StopRequested()) return 0;
    const int64_t end = ChunkEnd(begin, spectrum);
    SolveChunk(begin, end, spectrum, solved, scratch);
    begin = end;
  }
  // To where the triangle was.
  if (!MultiplyVectors(spectrum.z, solved, h, scratch + work_, pool)) return 0;
  pool.ParallelForBlocks(
      n_, kEigChunk, [&](int64_t begin, int64_t end) { WriteChunk(begin, end, spectrum, range, vectors, scratch); });
  return 0;
}

template class LargeEig<float>;
template class LargeEig<double>;
template class LargeEig<lapack::Complex64>;
template class LargeEig<lapack::Complex128>;

}  // namespace tensord::cpu
