#include "backends/cpu/linalg_factorizations.h"

#include <numeric>
#include <optional>

#include "backends/cpu/lapack.h"
#include "backends/cpu/linalg_batch.h"
#include "backends/cpu/linalg_blocked.h"
#include "backends/cpu/linalg_copies.h"
#include "backends/cpu/linalg_dtypes.h"

namespace tensord::cpu {
namespace {

template <typename T>
class CholeskyRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kMatrixNotPositiveDefinite;

  explicit CholeskyRoutine(const BoundInstruction& instruction) : n_(instruction.operands[0].shape[0]) {
    if constexpr (!lapack::kIsComplex<T>) {
      if (BlockedCholesky<T>::Suits(n_)) blocked_.emplace(n_);
    }
  }

  int64_t scratch_bytes() const { return blocked_.has_value() ? blocked_->scratch_bytes() : 0; }

  int64_t Run(const MatrixCall& call) const {
    T* const l = call.result<T>(0);
    CopyLower(call.operand<T>(0), n_, 0, n_, n_, l);
    ClearAboveDiagonal(n_, n_, l);
    if (const int64_t info = Factor(call, l); info != 0) return info;
    // A NaN is not positive, but OpenBLAS lets it pass.
    for (int64_t i = 0; i < n_; ++i) {
      if (std::isnan(std::real(l[i * n_ + i]))) return i + 1;
    }
    return 0;
  }

 private:
  int64_t Factor(const MatrixCall& call, T* l) const {
    if constexpr (!lapack::kIsComplex<T>) {
      if (blocked_.has_value()) {
        const int64_t info = blocked_->Run(l, call.scratch, *call.pool);
        ClearAboveDiagonal(n_, n_, l);
        return info;
      }
    }
    return lapack::Potrf(n_, l, n_);
  }

  int64_t n_;
  std::optional<BlockedCholesky<lapack::Real<T>>> blocked_;
};

template <typename T>
class LuRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kInternal;

  explicit LuRoutine(const BoundInstruction& instruction)
      : m_(instruction.operands[0].shape[0]), n_(instruction.operands[0].shape[1]), k_(std::min(m_, n_)) {
    pivots_ = layout_.Add<lapack_int>(k_);
    order_ = layout_.Add<int64_t>(m_);
  }

  int64_t scratch_bytes() const { return layout_.bytes(); }

  int64_t Run(const MatrixCall& call) const {
    const T* const a = call.operand<T>(0);
    T *const permutation = call.result<T>(0), *const l = call.result<T>(1), *const u = call.result<T>(2);
    int64_t* const order = call.at<int64_t>(order_);
    std::iota(order, order + m_, 0);
    int parity = 1;
    if (!AreFinite(a, m_ * n_)) {
      std::fill_n(l, m_ * k_, NaN<T>());
      std::fill_n(u, k_ * n_, NaN<T>());
    } else {
      lapack_int* const pivots = call.at<lapack_int>(pivots_);
      T* const packed = m_ >= n_ ? l : u;  // the result that is as large as A
      std::copy_n(a, m_ * n_, packed);
      if (const int64_t info = lapack::Getrf(m_, n_, packed, pivots); info < 0) return info;
      if (packed == l) {
        CopyUpperClearLower(packed, m_, k_, n_, u);
      } else {
        CopyLower(packed, m_, 1, m_, k_, l);
      }
      for (int64_t i = 0; i < k_; ++i) {
        if (pivots[i] - 1 == i) continue;
        std::swap(order[i], order[pivots[i] - 1]);
        parity = -parity;
      }
    }
    ClearAboveDiagonal(m_, k_, l);
    SetDiagonal(m_, k_, T(1), l);
    ClearBelowDiagonal(k_, n_, u);
    std::fill_n(permutation, m_ * m_, T(0));
    for (int64_t i = 0; i < m_; ++i) permutation[order[i] * m_ + i] = T(1);
    *call.result<T>(3) = T(static_cast<lapack::Real<T>>(parity));
    return 0;
  }

 private:
  int64_t m_, n_, k_;
  ScratchLayout layout_;
  int64_t pivots_ = 0, order_ = 0;
};

template <typename T>
class QrRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kInternal;

  explicit QrRoutine(const BoundInstruction& instruction)
      : m_(instruction.operands[0].shape[0]),
        n_(instruction.operands[0].shape[1]),
        q_columns_(instruction.results[0].shape[1]),
        work_size_(
            std::max(lapack::Geqrf(m_, n_, static_cast<T*>(nullptr), nullptr, nullptr, 0),
                     lapack::Orgqr(m_, q_columns_, std::min(m_, n_), static_cast<T*>(nullptr), nullptr, nullptr, 0))) {
    if constexpr (!lapack::kIsComplex<T>) {
      if (BlockedQr<T>::Suits(m_, n_)) blocked_ = BlockedQr<T>(m_, n_, q_columns_);
    }
    tau_ = layout_.Add<T>(std::min(m_, n_));
    work_ = layout_.Add<T>(work_size_);
  }

  int64_t scratch_bytes() const { return blocked_.has_value() ? blocked_->scratch_bytes() : layout_.bytes(); }

  int64_t Run(const MatrixCall& call) const {
    T *const q = call.result<T>(0), *const r = call.result<T>(1);
    if constexpr (!lapack::kIsComplex<T>) {
      if (blocked_.has_value()) return blocked_->Run(call.operand<T>(0), q, r, call.scratch, *call.pool);
    }
    T *const tau = call.at<T>(tau_), *const work = call.at<T>(work_);
    const int64_t k = std::min(m_, n_);
    // A fits into Q where that has columns enough, and else into R, which then has all rows.
    T* const packed = q_columns_ >= n_ ? q : r;
    std::copy_n(call.operand<T>(0), m_ * n_, packed);
    if (const int64_t info = lapack::Geqrf(m_, n_, packed, tau, work, work_size_); info != 0) return info;
    if (packed == q) {
      CopyUpperClearLower(q, m_, q_columns_, n_, r);
    } else {
      CopyLower(r, m_, 1, m_, k, q);
      ClearBelowDiagonal(m_, n_, r);
    }
    return lapack::Orgqr(m_, q_columns_, k, q, tau, work, work_size_);
  }

 private:
  int64_t m_, n_, q_columns_;
  int64_t work_size_;
  std::optional<BlockedQr<lapack::Real<T>>> blocked_;
  ScratchLayout layout_;
  int64_t tau_ = 0, work_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackCholesky(const BoundInstruction& instruction) {
  return MakeMatrixKernel<CholeskyRoutine>(instruction);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackLu(const BoundInstruction& instruction) {
  return MakeMatrixKernel<LuRoutine>(instruction);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackQr(const BoundInstruction& instruction) {
  return MakeMatrixKernel<QrRoutine>(instruction);
}

}  // namespace tensord::cpu
