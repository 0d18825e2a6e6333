#include "backends/cpu/linalg/large/oblong_svd.h"

#include <algorithm>

#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/number_parts.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/stop_signal.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastLargeSize = 128;  // as kLeastBlockedSize: below it LAPACK has the square that is left
constexpr int64_t kAdjointColumns = 32;   // of a task

// The adjoint of a rows x columns matrix, in blocks that caches hold.
template <typename T>
void WriteAdjoint(int64_t rows, int64_t columns, const T* a, T* adjoint, ThreadPool& pool) {
  pool.ParallelForBlocks(rows, kAdjointColumns, [&](int64_t begin, int64_t end) {
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = begin; i < end; ++i) adjoint[i * columns + j] = Conjugate(a[j * rows + i]);
    }
  });
}

}  // namespace

template <typename T>
bool OblongSvd<T>::Suits(int64_t m, int64_t n, bool full) {
  const int64_t few = std::min(m, n), many = std::max(m, n);
  if (5 * many < 8 * few || !PanelledGeqrf<T>::Suits(many, few, full ? many : few)) return false;
  return few < kLeastLargeSize || LargeSvd<T>::Suits(few, few);
}

template <typename T>
OblongSvd<T>::OblongSvd(int64_t m, int64_t n, bool full)
    : many_(std::max(m, n)),
      few_(std::min(m, n)),
      is_wide_(m < n),
      q_columns_(full ? many_ : few_),
      geqrf_(many_, few_),
      q_(kDTypeOf<T>, {.length = many_, .count = few_, .others = q_columns_, .v_leading = many_, .c_leading = many_}) {
  int64_t triangle_bytes = 0;
  if (LargeSvd<T>::Suits(few_, few_)) {
    large_.emplace(few_, few_, /*full=*/false);
    triangle_bytes = large_->scratch_bytes();
  } else {
    small_.emplace(few_, /*has_vectors=*/true);
    triangle_bytes = small_->scratch_bytes();
  }
  a_ = layout_.Add<T>(many_ * few_);
  tau_ = layout_.Add<T>(few_);
  triangle_ = layout_.Add<T>(few_ * few_);
  left_ = layout_.Add<T>(few_ * few_);
  if (is_wide_) {
    right_ = layout_.Add<T>(few_ * few_);
    q_place_ = layout_.Add<T>(many_ * q_columns_);
  }
  // The steps follow each other.
  work_ = layout_.Add<char>(std::max({geqrf_.scratch_bytes(), triangle_bytes, q_.scratch_bytes()}));
}

template <typename T>
int64_t OblongSvd<T>::RunTriangle(T* triangle, T* left, R* s, T* right, char* scratch, ThreadPool& pool) const {
  if (large_.has_value()) return large_->Run(triangle, left, s, right, scratch, pool);
  return small_->Run(triangle, left, s, right, scratch);
}

// In the first rows and columns of the identity.
template <typename T>
void OblongSvd<T>::PutOnDiagonal(const T* small, T* large, ThreadPool& pool) const {
  pool.ParallelForBlocks(q_columns_, kAdjointColumns, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end && !StopRequested(); ++j) {
      T* const column = large + j * many_;
      std::fill_n(column, many_, T(0));
      if (j < few_) {
        std::copy_n(small + j * few_, few_, column);
      } else {
        column[j] = T(1);
      }
    }
  });
}

template <typename T>
int64_t OblongSvd<T>::Run(const T* a, T* u, R* s, T* vh, char* scratch, ThreadPool& pool) const {
  const auto at = [&](int64_t place) { return reinterpret_cast<T*>(scratch + place); };
  T *const reflectors = at(a_), *const tau = at(tau_), *const triangle = at(triangle_), *const left = at(left_);
  if (is_wide_) {
    WriteAdjoint(few_, many_, a, reflectors, pool);
  } else {
    std::copy_n(a, many_ * few_, reflectors);
  }
  if (const int64_t info = geqrf_.Run(reflectors, tau, scratch + work_, pool); info != 0) return info;
  if (StopRequested()) return 0;
  CopyUpperClearLower(reflectors, many_, few_, few_, triangle);
  T* const right = is_wide_ ? at(right_) : vh;
  if (const int64_t info = RunTriangle(triangle, left, s, right, scratch + work_, pool); info != 0) return info;
  if (StopRequested()) return 0;
  T* const vectors = is_wide_ ? at(q_place_) : u;
  PutOnDiagonal(left, vectors, pool);
  q_.Apply(reflectors, tau, vectors, scratch + work_, pool);
  if (!is_wide_ || StopRequested()) return 0;
  WriteAdjoint(few_, few_, right, u, pool);
  WriteAdjoint(many_, q_columns_, vectors, vh, pool);
  return 0;
}

template class OblongSvd<float>;
template class OblongSvd<double>;
template class OblongSvd<lapack::Complex64>;
template class OblongSvd<lapack::Complex128>;

}  // namespace tensord::cpu
