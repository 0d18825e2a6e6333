#include "backends/cpu/linalg/solutions.h"

#include <optional>

#include "backends/cpu/linalg/blocked_triangular_solve.h"
#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/dtypes.h"
#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/lu_factors.h"
#include "backends/cpu/linalg/large/tiny_pivots.h"
#include "engine/families/linalg/solutions.h"

namespace tensord::cpu {
namespace {

// Multiplications that are worth a task of their own.
constexpr int64_t kSolutionTaskWork = int64_t{1} << 25;
constexpr int64_t kBlockedTaskWork = int64_t{1} << 23;
constexpr int64_t kLeastBlockedSides = 64;

// Right-hand sides that a task solves for; they are independent of each other.
int64_t BlockOfSides(int64_t n, int64_t sides, int64_t task_work = kSolutionTaskWork, int64_t least = 1) {
  const int64_t worth = std::max(least, task_work / (n * n));
  // BLAS's kernels like a multiple of their width.
  return std::min(sides, (worth + 15) / 16 * 16);
}

template <typename T>
class SolveRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kMatrixSingular;

  explicit SolveRoutine(const BoundInstruction& instruction)
      : n_(instruction.operands[1].shape[0]),
        columns_(instruction.operands[1].shape[1]),
        block_(BlockOfSides(n_, columns_)),
        factors_(n_, n_) {
    lu_ = layout_.Add<T>(n_ * n_);
    pivots_ = layout_.Add<lapack_int>(n_);
    work_ = layout_.Add<char>(factors_.scratch_bytes());
  }

  int64_t scratch_bytes() const { return layout_.bytes(); }

  int64_t Run(const MatrixCall& call) const {
    T *const lu = call.at<T>(lu_), *const x = call.result<T>(0);
    lapack_int* const pivots = call.at<lapack_int>(pivots_);
    if (!CopyAndAreFinite(call.operand<T>(0), n_, n_, lu, *call.pool)) {
      std::fill_n(x, n_ * columns_, NaN<T>());
      return 0;
    }
    if (const int64_t info = factors_.Run(call.operand<T>(0), lu, pivots, call.at<char>(work_), *call.pool); info != 0)
      return info;
    const T* const b = call.operand<T>(1);
    const bool divides = HasTinyPivot(lu, n_, n_);
    call.pool->ParallelForBlocks(columns_, block_, [&](int64_t begin, int64_t end) {
      T* const sides = x + begin * n_;
      std::copy(b + begin * n_, b + end * n_, sides);
      divides ? SubstituteByDivision(lu, pivots, end - begin, sides)
              : static_cast<void>(lapack::Getrs(n_, end - begin, lu, pivots, sides));
    });
    return 0;
  }

 private:
  void SubstituteByDivision(const T* lu, const lapack_int* pivots, int64_t count, T* sides) const {
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t i = 0; i < n_; ++i) std::swap(sides[j * n_ + i], sides[j * n_ + pivots[i] - 1]);
    }
    SolveByDivision({.left = true, .lower = true, .transpose = CblasNoTrans, .unit_diagonal = true}, n_, count, lu, n_,
                    sides, n_);
    SolveByDivision({.left = true, .lower = false, .transpose = CblasNoTrans, .unit_diagonal = false}, n_, count, lu,
                    n_, sides, n_);
  }

  int64_t n_, columns_, block_;
  LuFactors<T> factors_;
  ScratchLayout layout_;
  int64_t lu_ = 0, pivots_ = 0, work_ = 0;
};

template <typename T>
class TriangularSolveRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kInternal;

  explicit TriangularSolveRoutine(const BoundInstruction& instruction)
      : rows_(instruction.operands[1].shape[0]), columns_(instruction.operands[1].shape[1]) {
    const Attributes& attrs = *instruction.attrs;
    constexpr CBLAS_TRANSPOSE kTransposes[] = {CblasNoTrans, CblasTrans, CblasConjTrans};
    triangle_ = {.left = attrs.Flag("left_side"),
                 .lower = attrs.Flag("lower"),
                 .transpose = kTransposes[attrs.Int("transpose_a")],
                 .unit_diagonal = attrs.Flag("unit_diagonal")};
    n_ = triangle_.left ? rows_ : columns_;
    const int64_t sides = triangle_.left ? columns_ : rows_;
    if constexpr (!lapack::kIsComplex<T>) blocked_ = BlockedTriangularSolve<T>::Plan(triangle_, n_, sides);
    block_ =
        blocked_.has_value() ? BlockOfSides(n_, sides, kBlockedTaskWork, kLeastBlockedSides) : BlockOfSides(n_, sides);
  }

  int64_t scratch_bytes() const { return 0; }

  int64_t Run(const MatrixCall& call) const {
    const T *const a = call.operand<T>(0), *const b = call.operand<T>(1);
    T* const x = call.result<T>(0);
    const bool divides = !triangle_.unit_diagonal && HasTinyPivot(a, n_, n_);
    const auto solve = [&](int64_t m, int64_t n, T* sides) {
      if (divides) return SolveByDivision(triangle_, m, n, a, n_, sides, rows_);
      if constexpr (!lapack::kIsComplex<T>) {
        if (blocked_.has_value()) return blocked_->Run(a, n_, triangle_.left ? n : m, sides, rows_);
      }
      lapack::Trsm(triangle_, m, n, a, n_, sides, rows_);
    };
    call.pool->ParallelForBlocks(triangle_.left ? columns_ : rows_, block_, [&](int64_t begin, int64_t end) {
      if (triangle_.left) {
        std::copy(b + begin * rows_, b + end * rows_, x + begin * rows_);
        solve(rows_, end - begin, x + begin * rows_);
      } else {
        for (int64_t j = 0; j < columns_; ++j) {
          std::copy(b + j * rows_ + begin, b + j * rows_ + end, x + j * rows_ + begin);
        }
        solve(end - begin, columns_, x + begin);
      }
    });
    return 0;
  }

 private:
  int64_t rows_, columns_;
  int64_t n_ = 0, block_ = 0;
  lapack::Triangle triangle_;
  std::optional<BlockedTriangularSolve<lapack::Real<T>>> blocked_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackSolve(const BoundInstruction& instruction) {
  return MakeMatrixKernel<SolveRoutine>(instruction);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackTriangularSolve(const BoundInstruction& instruction) {
  return MakeMatrixKernel<TriangularSolveRoutine>(instruction);
}

}  // namespace tensord::cpu
