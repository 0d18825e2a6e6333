#include "backends/cpu/complex_spectra.h"

#include <algorithm>

#include "backends/cpu/lapack_steps.h"
#include "backends/cpu/linalg_copies.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastSize = 128;  // below it LAPACK's drivers cost as little

// A complex matrix as a real one of twice as many rows, times a real one of k rows and columns.
template <typename R>
PlainProduct ComplexTimesReal(int64_t rows, int64_t k) {
  return PlainProduct(kDTypeOf<R>, {.m = 2 * rows,
                                    .n = k,
                                    .k = k,
                                    .a = {.row_stride = 1, .column_stride = 2 * rows},
                                    .b = {.row_stride = 1, .column_stride = k},
                                    .c_column_stride = 2 * rows});
}

template <typename T>
T* At(char* scratch, int64_t place) {
  return reinterpret_cast<T*>(scratch + place);
}

}  // namespace

template <typename R>
bool ComplexEigh<R>::Suits(int64_t n) {
  return n >= kLeastSize;
}

template <typename R>
ComplexEigh<R>::ComplexEigh(int64_t n) : n_(n), product_(ComplexTimesReal<R>(n, n)) {
  C* const none = nullptr;
  work_size_ = std::max(lapack::Hetrd(n, none, nullptr, nullptr, none, none, 0), lapack::Ungtr(n, none, none, none, 0));
  int64_t work_bytes = std::max(work_size_ * static_cast<int64_t>(sizeof(C)), product_.scratch_bytes());
  if (Tridiagonalization<C>::Suits(n)) {
    tridiagonalization_.emplace(n);
    work_bytes = std::max(work_bytes, tridiagonalization_->scratch_bytes());
  }
  a_ = layout_.Add<C>(n * n);
  beside_ = layout_.Add<R>(n);
  tau_ = layout_.Add<C>(n);
  work_ = layout_.Add<char>(work_bytes);
  real_vectors_ = layout_.Add<R>(n * n);
  real_work_ = layout_.Add<R>(1 + 4 * n + n * n);
  integers_ = layout_.Add<lapack_int>(3 + 5 * n);
}

template <typename R>
int64_t ComplexEigh<R>::Run(const C* a, R* values, C* vectors, char* scratch, ThreadPool& pool) const {
  C *const reduced = At<C>(scratch, a_), *const tau = At<C>(scratch, tau_), *const work = At<C>(scratch, work_);
  R *const beside = At<R>(scratch, beside_), *const real_vectors = At<R>(scratch, real_vectors_);
  CopyLower(a, n_, 0, n_, n_, reduced);
  if (tridiagonalization_.has_value()) {
    tridiagonalization_->Run(reduced, values, beside, tau, scratch + work_, pool);
  } else if (const int64_t info = lapack::Hetrd(n_, reduced, values, beside, tau, work, work_size_); info != 0) {
    return info;
  }
  int64_t infos[2] = {};
  pool.ParallelFor(2, [&](int64_t task) {
    infos[task] = task == 0 ? lapack::Ungtr(n_, reduced, tau, work, work_size_)
                            : lapack::Stedc(n_, values, beside, real_vectors, At<R>(scratch, real_work_),
                                            At<lapack_int>(scratch, integers_));
  });
  for (const int64_t info : infos) {
    if (info != 0) return info;
  }
  product_.Run(reduced, real_vectors, vectors, scratch + work_, /*accumulates=*/false, pool);
  return 0;
}

template <typename R>
bool ComplexSvd<R>::Suits(int64_t m, int64_t n) {
  const int64_t few = std::min(m, n), many = std::max(m, n);
  // LAPACK's driver takes the QR factors first where there are many rows or columns.
  return few >= kLeastSize && 5 * many < 8 * few;
}

template <typename R>
ComplexSvd<R>::ComplexSvd(int64_t m, int64_t n, bool full)
    : m_(m), n_(n), k_(std::min(m, n)), u_columns_(full ? m : k_), vh_rows_(full ? n : k_), bidiagonalization_(m, n) {
  left_ = ComplexTimesReal<R>(m, k_);
  // All real parts, then all imaginary ones.
  right_ = PlainProduct(kDTypeOf<R>, {.m = k_,
                                      .n = 2 * n,
                                      .k = k_,
                                      .a = {.row_stride = 1, .column_stride = k_},
                                      .b = {.row_stride = 1, .column_stride = k_},
                                      .c_column_stride = k_});
  C* const none = nullptr;
  q_size_ = lapack::UngbrQ(m, n, u_columns_, none, none, none, 0);
  p_size_ = lapack::UngbrP(m, n, vh_rows_, none, none, none, 0);
  q_ = layout_.Add<C>(m * std::max(n, u_columns_));  // A is reduced there
  p_ = layout_.Add<C>(vh_rows_ * n);
  beside_ = layout_.Add<R>(k_);
  column_tau_ = layout_.Add<C>(k_);
  row_tau_ = layout_.Add<C>(k_);
  real_u_ = layout_.Add<R>(k_ * k_);
  real_vh_ = layout_.Add<R>(k_ * k_);
  q_work_ = layout_.Add<char>(std::max(bidiagonalization_.scratch_bytes(), q_size_ * static_cast<int64_t>(sizeof(C))));
  p_work_ = layout_.Add<C>(p_size_);
  // When the vectors of two diagonals are there: the parts of P^H.
  real_work_ = layout_.Add<R>(std::max(3 * k_ * k_ + 4 * k_, 2 * k_ * n));
  integers_ = layout_.Add<lapack_int>(8 * k_);
  products_ = layout_.Add<char>(std::max(left_.scratch_bytes(), right_.scratch_bytes()));
}

// Columns of Q past those that are turned are those of U.
template <typename R>
void ComplexSvd<R>::MultiplyLeft(const R* real_u, C* u, char* scratch, ThreadPool& pool) const {
  const C* const q = At<C>(scratch, q_);
  left_.Run(q, real_u, u, scratch + products_, /*accumulates=*/false, pool);
  std::copy(q + k_ * m_, q + u_columns_ * m_, u + k_ * m_);
}

template <typename R>
void ComplexSvd<R>::MultiplyRight(const R* real_vh, C* vh, char* scratch, ThreadPool& pool) const {
  constexpr int64_t kTaskColumns = 32;
  const C* const p = At<C>(scratch, p_);
  R *const parts = At<R>(scratch, real_work_), *const turned = At<R>(scratch, q_);  // Q is done with
  pool.ParallelForBlocks(n_, kTaskColumns, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = 0; i < k_; ++i) {
        parts[j * k_ + i] = p[j * vh_rows_ + i].real();
        parts[(n_ + j) * k_ + i] = p[j * vh_rows_ + i].imag();
      }
    }
  });
  right_.Run(real_vh, parts, turned, scratch + products_, /*accumulates=*/false, pool);
  pool.ParallelForBlocks(n_, kTaskColumns, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = 0; i < k_; ++i) vh[j * vh_rows_ + i] = C(turned[j * k_ + i], turned[(n_ + j) * k_ + i]);
      std::copy(p + j * vh_rows_ + k_, p + (j + 1) * vh_rows_, vh + j * vh_rows_ + k_);
    }
  });
}

template <typename R>
int64_t ComplexSvd<R>::Run(const C* a, C* u, R* s, C* vh, char* scratch, ThreadPool& pool) const {
  C *const q = At<C>(scratch, q_), *const p = At<C>(scratch, p_);
  C *const column_tau = At<C>(scratch, column_tau_), *const row_tau = At<C>(scratch, row_tau_);
  R *const beside = At<R>(scratch, beside_), *const real_u = At<R>(scratch, real_u_),
           *const real_vh = At<R>(scratch, real_vh_);
  std::copy_n(a, m_ * n_, q);
  bidiagonalization_.Run(q, s, beside, column_tau, row_tau, scratch + q_work_, pool);
  for (int64_t j = 0; j < n_; ++j) std::copy_n(q + j * m_, k_, p + j * vh_rows_);
  int64_t infos[3] = {};
  pool.ParallelFor(3, [&](int64_t task) {
    if (task == 0) {
      infos[task] = lapack::Bdsdc(m_ >= n_, k_, s, beside, real_u, k_, real_vh, k_, At<R>(scratch, real_work_),
                                  At<lapack_int>(scratch, integers_));
    } else if (task == 1) {
      infos[task] = lapack::UngbrQ(m_, n_, u_columns_, q, column_tau, At<C>(scratch, q_work_), q_size_);
    } else {
      infos[task] = lapack::UngbrP(m_, n_, vh_rows_, p, row_tau, At<C>(scratch, p_work_), p_size_);
    }
  });
  for (const int64_t info : infos) {
    if (info != 0) return info;
  }
  MultiplyLeft(real_u, u, scratch, pool);
  MultiplyRight(real_vh, vh, scratch, pool);
  return 0;
}

template class ComplexEigh<float>;
template class ComplexEigh<double>;
template class ComplexSvd<float>;
template class ComplexSvd<double>;

}  // namespace tensord::cpu
