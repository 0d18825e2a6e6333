#include "backends/cpu/linalg/large/decompositions.h"

#include <algorithm>

#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/steps.h"
#include "backends/cpu/matmul/tiles.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastBlockedSize = 128;  // below it LAPACK's calls cost as little

template <typename T>
T* ScratchPlace(char* scratch, int64_t place) {
  return reinterpret_cast<T*>(scratch + place);
}

}  // namespace

template <typename T>
bool BlockedQr<T>::Suits(int64_t m, int64_t n, int64_t q_columns) {
  return PanelledGeqrf<T>::Suits(m, n, q_columns);
}

template <typename T>
BlockedQr<T>::BlockedQr(int64_t m, int64_t n, int64_t q_columns, bool wants_q)
    : m_(m), n_(n), q_columns_(q_columns), wants_q_(wants_q), geqrf_(m, n) {
  const int64_t k = std::min(m, n);
  q_ = BlockReflectors(kDTypeOf<T>, {.length = m,
                                     .count = k,
                                     .others = q_columns,
                                     .starts_as_identity = true,
                                     .lies_in_v = q_columns >= n,
                                     .v_leading = m,
                                     .c_leading = m});
  tau_ = layout_.Add<T>(k);
  // The steps follow each other.
  work_ = layout_.Add<char>(std::max(geqrf_.scratch_bytes(), q_.scratch_bytes()));
}

template <typename T>
int64_t BlockedQr<T>::Run(const T* a, T* q, T* r, char* scratch, ThreadPool& pool) const {
  T* const tau = ScratchPlace<T>(scratch, tau_);
  // A fits into Q if that has enough columns, and else into R, which then has all rows.
  T* const packed = q_columns_ >= n_ ? q : r;
  std::copy_n(a, m_ * n_, packed);
  if (const int64_t info = geqrf_.Run(packed, tau, scratch + work_, pool); info != 0) return info;
  if (StopRequested()) return 0;
  // The columns of Q that are not there yet are the identity's.
  const int64_t there = packed == q ? n_ : 0;
  for (int64_t j = there; wants_q_ && j < q_columns_ && !StopRequested(); ++j) {
    std::fill_n(q + j * m_, m_, T(0));
    q[j * (m_ + 1)] = 1;
  }
  if (packed == q) {
    CopyUpperClearLower(q, m_, q_columns_, n_, r);
    if (wants_q_) q_.Apply(q, tau, q, scratch + work_, pool);
  } else {
    if (wants_q_) q_.Apply(r, tau, q, scratch + work_, pool);
    ClearBelowDiagonal(m_, n_, r);
  }
  return 0;
}

template <typename T>
bool BlockedEigh<T>::Suits(int64_t n) {
  return n >= kLeastBlockedSize && BlockReflectors::Suits(kDTypeOf<T>, n - 1, n - 1) && Tridiagonalization<T>::Suits(n);
}

template <typename T>
BlockedEigh<T>::BlockedEigh(int64_t n)
    : n_(n),
      tridiagonalization_(n),
      tridiagonal_vectors_(n),
      q_(kDTypeOf<T>, {.length = n - 1, .count = n - 1, .others = n, .v_leading = n, .c_leading = n}) {
  a_ = layout_.Add<T>(n * n);
  beside_ = layout_.Add<T>(n);
  tau_ = layout_.Add<T>(n);
  // The steps follow each other.
  work_ = layout_.Add<char>(
      std::max({tridiagonalization_.scratch_bytes(), tridiagonal_vectors_.scratch_bytes(), q_.scratch_bytes()}));
}

template <typename T>
int64_t BlockedEigh<T>::Run(const T* a, T* values, T* vectors, char* scratch, ThreadPool& pool) const {
  T *const reduced = ScratchPlace<T>(scratch, a_), *const beside = ScratchPlace<T>(scratch, beside_),
           *const tau = ScratchPlace<T>(scratch, tau_);
  CopyLower(a, n_, 0, n_, n_, reduced);
  tridiagonalization_.Run(reduced, values, beside, tau, scratch + work_, pool);
  if (StopRequested()) return 0;
  const int64_t info = tridiagonal_vectors_.Run(values, beside, vectors, scratch + work_, pool);
  if (info != 0 || StopRequested()) return info;
  // The reflectors leave the first row alone.
  q_.Apply(reduced + 1, tau, vectors + 1, scratch + work_, pool);
  return 0;
}

template <typename T>
bool BlockedSvd<T>::Suits(int64_t m, int64_t n) {
  const int64_t few = std::min(m, n), many = std::max(m, n);
  // LAPACK's driver takes the QR factors first where there are many rows or columns.
  return few >= kLeastBlockedSize && 5 * many < 8 * few && BlockReflectors::Suits(kDTypeOf<T>, few - 1, few - 1);
}

template <typename T>
BlockedSvd<T>::BlockedSvd(int64_t m, int64_t n, bool full)
    : m_(m),
      n_(n),
      k_(std::min(m, n)),
      u_columns_(full ? m : k_),
      vh_rows_(full ? n : k_),
      bidiagonalization_(m, n),
      bidiagonal_vectors_(k_) {
  // The bidiagonal matrix is upper where there are at least as many rows as columns, else lower; the reflectors of the
  // shorter side leave the first row, or column, alone.
  const int64_t column_skip = m >= n ? 0 : 1, row_skip = m >= n ? 1 : 0;
  q_ = BlockReflectors(
      kDTypeOf<T>,
      {.length = m - column_skip, .count = k_ - column_skip, .others = u_columns_, .v_leading = m, .c_leading = m});
  p_ = BlockReflectors(kDTypeOf<T>, {.length = n - row_skip,
                                     .count = k_ - row_skip,
                                     .others = vh_rows_,
                                     .side = BlockReflectors::Side::kRight,
                                     .stored_in_rows = true,
                                     .v_leading = m,
                                     .c_leading = vh_rows_});
  a_ = layout_.Add<T>(m * n);
  beside_ = layout_.Add<T>(k_);
  column_tau_ = layout_.Add<T>(k_);
  row_tau_ = layout_.Add<T>(k_);
  // The steps follow each other.
  work_ = layout_.Add<char>(std::max({bidiagonalization_.scratch_bytes(), bidiagonal_vectors_.scratch_bytes(),
                                      q_.scratch_bytes(), p_.scratch_bytes()}));
}

template <typename T>
int64_t BlockedSvd<T>::Run(const T* a, T* u, T* s, T* vh, char* scratch, ThreadPool& pool) const {
  T *const reduced = ScratchPlace<T>(scratch, a_), *const beside = ScratchPlace<T>(scratch, beside_);
  char* const work = scratch + work_;
  T *const column_tau = ScratchPlace<T>(scratch, column_tau_), *const row_tau = ScratchPlace<T>(scratch, row_tau_);
  std::copy_n(a, m_ * n_, reduced);
  const bool is_upper = m_ >= n_;
  bidiagonalization_.Run(reduced, s, beside, column_tau, row_tau, work, pool);
  // Around the vectors of the bidiagonal matrix is the identity.
  std::fill_n(u, m_ * u_columns_, T(0));
  SetDiagonal(m_, u_columns_, T(1), u);
  std::fill_n(vh, vh_rows_ * n_, T(0));
  SetDiagonal(vh_rows_, n_, T(1), vh);
  if (StopRequested()) return 0;
  const int64_t info = bidiagonal_vectors_.Run(is_upper, s, beside, {u, m_}, {vh, vh_rows_}, work, pool);
  if (info != 0 || StopRequested()) return info;
  if (is_upper) {
    q_.Apply(reduced, column_tau, u, work, pool);
    p_.Apply(reduced + m_, row_tau, vh + vh_rows_, work, pool);
  } else {
    q_.Apply(reduced + 1, column_tau, u + 1, work, pool);
    p_.Apply(reduced, row_tau, vh, work, pool);
  }
  return 0;
}

template class BlockedQr<float>;
template class BlockedQr<double>;
template class BlockedQr<lapack::Complex64>;
template class BlockedQr<lapack::Complex128>;
template class BlockedEigh<float>;
template class BlockedEigh<double>;
template class BlockedSvd<float>;
template class BlockedSvd<double>;

}  // namespace tensord::cpu
