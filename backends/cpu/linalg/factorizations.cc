#include "backends/cpu/linalg/factorizations.h"

#include <numeric>
#include <optional>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/dtypes.h"
#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/blocked_cholesky.h"
#include "backends/cpu/linalg/large/decompositions.h"
#include "backends/cpu/linalg/large/lu_factors.h"
#include "backends/cpu/linalg/large/panelled_cholesky.h"
#include "backends/cpu/linalg/large/panelled_geqrf.h"

namespace tensord::cpu {
namespace {

template <typename T>
class CholeskyRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kMatrixNotPositiveDefinite;

  explicit CholeskyRoutine(const BoundInstruction& instruction) : n_(instruction.operands[0].shape[0]) {
    if constexpr (!lapack::kIsComplex<T>) {
      blocked_ = BlockedCholesky<T>::Plan(n_);
      if (blocked_.has_value()) return;
    }
    panelled_ = PanelledCholesky<T>::Plan(n_);
  }

  int64_t scratch_bytes() const { return 0; }

  int64_t Run(const MatrixCall& call) const {
    T* const l = call.result<T>(0);
    CopyLower(call.operand<T>(0), n_, 0, n_, n_, l);
    const int64_t info = Factor(call, l);
    ClearAboveDiagonal(n_, n_, l);
    if (info != 0) return info;
    // A NaN is not positive, but OpenBLAS lets it pass.
    for (int64_t i = 0; i < n_; ++i) {
      if (std::isnan(std::real(l[i * n_ + i]))) return i + 1;
    }
    return 0;
  }

 private:
  int64_t Factor(const MatrixCall& call, T* l) const {
    if constexpr (!lapack::kIsComplex<T>) {
      if (blocked_.has_value()) return blocked_->Run(l, *call.pool);
    }
    if (panelled_.has_value()) return panelled_->Run(l, *call.pool);
    return lapack::Potrf(n_, l, n_);
  }

  int64_t n_;
  std::optional<BlockedCholesky<lapack::Real<T>>> blocked_;
  std::optional<PanelledCholesky<T>> panelled_;
};

template <typename T>
class LuRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kInternal;

  LuRoutine(const BoundInstruction& instruction, const FamilyContext& context)
      : m_(instruction.operands[0].shape[0]),
        n_(instruction.operands[0].shape[1]),
        k_(std::min(m_, n_)),
        wants_permutation_(context.reads_result(0)),
        wants_lower_(context.reads_result(1)),
        wants_upper_(context.reads_result(2)),
        packs_in_lower_(m_ > n_ || (m_ == n_ && wants_lower_)),
        factors_(m_, n_, wants_lower_),
        column_block_(std::max<int64_t>(1, kTaskEntries / m_)) {
    pivots_ = layout_.Add<lapack_int>(k_);
    order_ = layout_.Add<int64_t>(m_);
    work_ = layout_.Add<char>(factors_.scratch_bytes());
  }

  int64_t scratch_bytes() const { return layout_.bytes(); }

  int64_t Run(const MatrixCall& call) const {
    T *const permutation = call.result<T>(0), *const l = call.result<T>(1), *const u = call.result<T>(2);
    int64_t* const order = call.at<int64_t>(order_);
    std::iota(order, order + m_, 0);
    int parity = 1;
    T* const packed = packs_in_lower_ ? l : u;
    const bool is_finite = CopyAndAreFinite(call.operand<T>(0), m_, n_, packed, *call.pool);
    if (is_finite) {
      lapack_int* const pivots = call.at<lapack_int>(pivots_);
      if (const int64_t info = factors_.Run(call.operand<T>(0), packed, pivots, call.at<char>(work_), *call.pool);
          info < 0)
        return info;
      for (int64_t i = 0; i < k_; ++i) {
        if (pivots[i] - 1 == i) continue;
        std::swap(order[i], order[pivots[i] - 1]);
        parity = -parity;
      }
    }
    call.pool->ParallelForBlocks(std::max(m_, n_), column_block_, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        is_finite ? TakeApartColumn(j, l, u) : FillColumn(j, l, u);
        if (wants_permutation_ && j < m_) std::fill_n(permutation + j * m_, m_, T(0));
      }
    });
    if (wants_permutation_) {
      for (int64_t i = 0; i < m_; ++i) permutation[order[i] * m_ + i] = T(1);
    }
    *call.result<T>(3) = T(static_cast<lapack::Real<T>>(parity));
    return 0;
  }

 private:
  static constexpr int64_t kTaskEntries = 1 << 14;  // of a copy: 128 KiB of F64, some 10 µs

  // Both factors lie in one of them.
  void TakeApartColumn(int64_t j, T* l, T* u) const {
    if (j >= k_) return;
    T *const l_column = l + j * m_, *const u_column = u + j * k_;
    if (packs_in_lower_) {
      if (wants_upper_) std::copy_n(l_column, j + 1, u_column);
    } else {
      if (wants_lower_) std::copy(u_column + j, u_column + m_, l_column + j);
    }
    if (wants_lower_) {
      std::fill_n(l_column, j, T(0));
      l_column[j] = T(1);
    }
    if (wants_upper_) std::fill(u_column + j + 1, u_column + k_, T(0));
  }

  void FillColumn(int64_t j, T* l, T* u) const {
    if (j < k_) {
      std::fill_n(l + j * m_, j, T(0));
      l[j * m_ + j] = T(1);
      std::fill(l + j * m_ + j + 1, l + (j + 1) * m_, NaN<T>());
    }
    if (j < n_) {
      const int64_t above = std::min(j + 1, k_);
      std::fill_n(u + j * k_, above, NaN<T>());
      std::fill(u + j * k_ + above, u + (j + 1) * k_, T(0));
    }
  }

  int64_t m_, n_, k_;
  bool wants_permutation_, wants_lower_, wants_upper_;
  bool packs_in_lower_;  // both factors, before they are taken apart: a result that is as large as A
  LuFactors<T> factors_;
  int64_t column_block_;
  ScratchLayout layout_;
  int64_t pivots_ = 0, order_ = 0, work_ = 0;
};

template <typename T>
class QrRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kInternal;

  QrRoutine(const BoundInstruction& instruction, const FamilyContext& context)
      : m_(instruction.operands[0].shape[0]),
        n_(instruction.operands[0].shape[1]),
        q_columns_(instruction.results[0].shape[1]),
        wants_q_(context.reads_result(0)),
        work_size_(
            std::max(lapack::Geqrf(m_, n_, static_cast<T*>(nullptr), nullptr, nullptr, 0),
                     lapack::Orgqr(m_, q_columns_, std::min(m_, n_), static_cast<T*>(nullptr), nullptr, nullptr, 0))) {
    blocked_ = BlockedQr<T>::Plan(m_, n_, q_columns_, wants_q_);
    tau_ = layout_.Add<T>(std::min(m_, n_));
    work_ = layout_.Add<T>(work_size_);
  }

  int64_t scratch_bytes() const { return blocked_.has_value() ? blocked_->scratch_bytes() : layout_.bytes(); }

  int64_t Run(const MatrixCall& call) const {
    T *const q = call.result<T>(0), *const r = call.result<T>(1);
    if (blocked_.has_value()) return blocked_->Run(call.operand<T>(0), q, r, call.scratch, *call.pool);
    T *const tau = call.at<T>(tau_), *const work = call.at<T>(work_);
    const int64_t k = std::min(m_, n_);
    // A fits into Q if that has enough columns, and else into R, which then has all rows.
    T* const packed = q_columns_ >= n_ ? q : r;
    std::copy_n(call.operand<T>(0), m_ * n_, packed);
    if (const int64_t info = lapack::Geqrf(m_, n_, packed, tau, work, work_size_); info != 0) return info;
    if (packed == q) {
      CopyUpperClearLower(q, m_, q_columns_, n_, r);
    } else {
      CopyLower(r, m_, 1, m_, k, q);
      ClearBelowDiagonal(m_, n_, r);
    }
    return !wants_q_ ? 0 : lapack::Orgqr(m_, q_columns_, k, q, tau, work, work_size_);
  }

 private:
  int64_t m_, n_, q_columns_;
  bool wants_q_;
  int64_t work_size_;
  std::optional<BlockedQr<T>> blocked_;
  ScratchLayout layout_;
  int64_t tau_ = 0, work_ = 0;
};

template <typename T>
class HouseholderQrRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kInternal;

  explicit HouseholderQrRoutine(const BoundInstruction& instruction)
      : m_(instruction.operands[0].shape[0]),
        n_(instruction.operands[0].shape[1]),
        work_size_(lapack::Geqrf(m_, n_, static_cast<T*>(nullptr), nullptr, nullptr, 0)) {
    panelled_ = PanelledGeqrf<T>::Plan(m_, n_);
    work_ = layout_.Add<T>(work_size_);
  }

  int64_t scratch_bytes() const { return panelled_.has_value() ? panelled_->scratch_bytes() : layout_.bytes(); }

  int64_t Run(const MatrixCall& call) const {
    T* const packed = call.result<T>(0);
    std::copy_n(call.operand<T>(0), m_ * n_, packed);
    if (panelled_.has_value()) return panelled_->Run(packed, call.result<T>(1), call.scratch, *call.pool);
    return lapack::Geqrf(m_, n_, packed, call.result<T>(1), call.at<T>(work_), work_size_);
  }

 private:
  int64_t m_, n_;
  int64_t work_size_;
  std::optional<PanelledGeqrf<T>> panelled_;
  ScratchLayout layout_;
  int64_t work_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackCholesky(const BoundInstruction& instruction) {
  return MakeMatrixKernel<CholeskyRoutine>(instruction);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackLu(const BoundInstruction& instruction,
                                                     const FamilyContext& context) {
  return MakeMatrixKernel<LuRoutine>(instruction, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackQr(const BoundInstruction& instruction,
                                                     const FamilyContext& context) {
  return MakeMatrixKernel<QrRoutine>(instruction, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackHouseholderQr(const BoundInstruction& instruction) {
  return MakeMatrixKernel<HouseholderQrRoutine>(instruction);
}

}  // namespace tensord::cpu
