#include "backends/cpu/linalg/large/complex_decompositions.h"

#include <algorithm>

#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/steps.h"
#include "engine/base/stop_signal.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastSpectraSize = 128;  // below it LAPACK's drivers cost as little

constexpr int64_t kTaskColumns = 32;  // of copies

// A complex matrix as a real one of twice as many rows, times a real one of k rows and columns.
template <typename R>
PlainProduct ComplexTimesReal(int64_t rows, int64_t k, bool transposes) {
  const MatrixStrides as_it_lies{.row_stride = 1, .column_stride = k}, turned{.row_stride = k, .column_stride = 1};
  return PlainProduct(kDTypeOf<R>, {.m = 2 * rows,
                                    .n = k,
                                    .k = k,
                                    .a = {.row_stride = 1, .column_stride = 2 * rows},
                                    .b = transposes ? turned : as_it_lies,
                                    .c_column_stride = 2 * rows});
}

// The columns of the unitary matrix of reflectors that leave the first `skip` rows and columns alone. It is where the
// identity is put.
template <typename C>
void MakeUnitary(const BlockReflectors& reflectors, const C* v, const C* tau, int64_t rows, int64_t columns,
                 int64_t skip, C* unitary, char* scratch, ThreadPool& pool) {
  std::fill_n(unitary, rows * columns, C(0));
  SetDiagonal(rows, columns, C(1), unitary);
  reflectors.Apply(v, tau, unitary + skip * (rows + 1), scratch, pool);
}

template <typename T>
T* ScratchAt(char* scratch, int64_t place) {
  return reinterpret_cast<T*>(scratch + place);
}

}  // namespace

template <typename R>
bool ComplexEigh<R>::Suits(int64_t n) {
  return n >= kLeastSpectraSize && Tridiagonalization<C>::Suits(n);
}

template <typename R>
ComplexEigh<R>::ComplexEigh(int64_t n)
    : n_(n),
      tridiagonalization_(n),
      tridiagonal_vectors_(n),
      reflectors_(kDTypeOf<C>, {.length = n - 1,
                                .count = n - 1,
                                .others = n - 1,
                                .starts_as_identity = true,
                                .v_leading = n,
                                .c_leading = n}),
      product_(ComplexTimesReal<R>(n, n, /*transposes=*/false)) {
  q_ = layout_.Add<C>(n * n);
  beside_ = layout_.Add<R>(n);
  tau_ = layout_.Add<C>(n);
  // The steps follow each other.
  work_ = layout_.Add<char>(std::max({tridiagonalization_.scratch_bytes(), tridiagonal_vectors_.scratch_bytes(),
                                      reflectors_.scratch_bytes(), product_.scratch_bytes()}));
  real_vectors_ = layout_.Add<R>(n * n);
}

template <typename R>
int64_t ComplexEigh<R>::Run(const C* a, R* values, C* vectors, char* scratch, ThreadPool& pool) const {
  C *const q = ScratchAt<C>(scratch, q_), *const tau = ScratchAt<C>(scratch, tau_);
  R *const beside = ScratchAt<R>(scratch, beside_), *const real_vectors = ScratchAt<R>(scratch, real_vectors_);
  if (a != vectors) CopyLower(a, n_, 0, n_, n_, vectors);
  tridiagonalization_.Run(vectors, values, beside, tau, scratch + work_, pool);
  if (StopRequested()) return 0;
  const int64_t info = tridiagonal_vectors_.Run(values, beside, real_vectors, scratch + work_, pool);
  if (info != 0 || StopRequested()) return info;
  MakeUnitary(reflectors_, vectors + 1, tau, n_, n_, /*skip=*/1, q, scratch + work_, pool);
  if (!StopRequested()) product_.Run(q, real_vectors, vectors, scratch + work_, /*accumulates=*/false, pool);
  return 0;
}

template <typename R>
bool ComplexSvd<R>::Suits(int64_t m, int64_t n) {
  const int64_t few = std::min(m, n), many = std::max(m, n);
  // LAPACK's driver takes the QR factors first where there are many rows or columns.
  return few >= kLeastSpectraSize && 5 * many < 8 * few;
}

template <typename R>
ComplexSvd<R>::ComplexSvd(int64_t m, int64_t n, bool full)
    : m_(m),
      n_(n),
      k_(std::min(m, n)),
      u_columns_(full ? m : k_),
      vh_rows_(full ? n : k_),
      column_skip_(m >= n ? 0 : 1),
      row_skip_(m >= n ? 1 : 0),
      bidiagonalization_(m, n),
      bidiagonal_vectors_(k_),
      left_(ComplexTimesReal<R>(m, k_, /*transposes=*/false)),
      right_(ComplexTimesReal<R>(n, k_, /*transposes=*/true)) {
  q_reflectors_ = BlockReflectors(kDTypeOf<C>, {.length = m - column_skip_,
                                                .count = k_ - column_skip_,
                                                .others = u_columns_ - column_skip_,
                                                .starts_as_identity = true,
                                                .v_leading = m,
                                                .c_leading = m});
  p_reflectors_ = BlockReflectors(kDTypeOf<C>, {.length = n - row_skip_,
                                                .count = k_ - row_skip_,
                                                .others = vh_rows_ - row_skip_,
                                                .stored_in_rows = true,
                                                .starts_as_identity = true,
                                                .v_leading = m,
                                                .c_leading = n});
  q_ = layout_.Add<C>(std::max(m * u_columns_, n * k_));  // and then V's first columns
  p_ = layout_.Add<C>(n * vh_rows_);
  beside_ = layout_.Add<R>(k_);
  column_tau_ = layout_.Add<C>(k_);
  row_tau_ = layout_.Add<C>(k_);
  real_u_ = layout_.Add<R>(k_ * k_);
  real_vh_ = layout_.Add<R>(k_ * k_);
  // The steps follow each other.
  work_ = layout_.Add<char>(
      std::max({bidiagonalization_.scratch_bytes(), bidiagonal_vectors_.scratch_bytes(), q_reflectors_.scratch_bytes(),
                p_reflectors_.scratch_bytes(), left_.scratch_bytes(), right_.scratch_bytes()}));
}

// Columns of Q past the turned ones are columns of U.
template <typename R>
void ComplexSvd<R>::MultiplyLeft(const R* real_u, C* u, char* scratch, ThreadPool& pool) const {
  const C* const q = ScratchAt<C>(scratch, q_);
  left_.Run(q, real_u, u, scratch + work_, /*accumulates=*/false, pool);
  std::copy(q + k_ * m_, q + u_columns_ * m_, u + k_ * m_);
}

template <typename R>
void ComplexSvd<R>::MultiplyRight(const R* real_vh, C* vh, char* scratch, ThreadPool& pool) const {
  const C* const p = ScratchAt<C>(scratch, p_);
  C* const v = ScratchAt<C>(scratch, q_);  // Q is done with
  right_.Run(p, real_vh, v, scratch + work_, /*accumulates=*/false, pool);
  pool.ParallelForBlocks(n_, kTaskColumns, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < vh_rows_; ++i) {
      const C* const column = (i < k_ ? v : p) + i * n_;
      for (int64_t j = begin; j < end; ++j) vh[j * vh_rows_ + i] = std::conj(column[j]);
    }
  });
}

template <typename R>
int64_t ComplexSvd<R>::Run(const C* a, C* u, R* s, C* vh, char* scratch, ThreadPool& pool) const {
  C *const q = ScratchAt<C>(scratch, q_), *const p = ScratchAt<C>(scratch, p_);
  C *const column_tau = ScratchAt<C>(scratch, column_tau_), *const row_tau = ScratchAt<C>(scratch, row_tau_);
  R *const beside = ScratchAt<R>(scratch, beside_), *const real_u = ScratchAt<R>(scratch, real_u_),
           *const real_vh = ScratchAt<R>(scratch, real_vh_);
  const bool is_upper = m_ >= n_;
  C* const reduced = is_upper ? u : vh;  // there is room
  if (a != reduced) std::copy_n(a, m_ * n_, reduced);
  bidiagonalization_.Run(reduced, s, beside, column_tau, row_tau, scratch + work_, pool);
  if (StopRequested()) return 0;
  const int64_t info = bidiagonal_vectors_.Run(is_upper, s, beside, {real_u, k_}, {real_vh, k_}, scratch + work_, pool);
  if (info != 0 || StopRequested()) return info;
  MakeUnitary(q_reflectors_, reduced + column_skip_, column_tau, m_, u_columns_, column_skip_, q, scratch + work_,
              pool);
  MakeUnitary(p_reflectors_, reduced + row_skip_ * m_, row_tau, n_, vh_rows_, row_skip_, p, scratch + work_, pool);
  if (StopRequested()) return 0;
  MultiplyLeft(real_u, u, scratch, pool);
  MultiplyRight(real_vh, vh, scratch, pool);
  return 0;
}

template class ComplexEigh<float>;
template class ComplexEigh<double>;
template class ComplexSvd<float>;
template class ComplexSvd<double>;

}  // namespace tensord::cpu
