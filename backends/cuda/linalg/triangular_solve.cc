#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/division_text.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/solutions.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// What NVIDIA recommends for Hopper; the library takes less of it elsewhere.
constexpr int64_t kTriangularBlasWorkspaceBytes = int64_t{32} << 20;

// A block for some sides of a matrix, or a small one: thread by thread a side.
constexpr char kTriangularDivide[] = R"(    const i64 matrix = i / kGroups, begin = i % kGroups * kThreads;
    const i64 end = kIsSmall || begin + kThreads > kSides ? kSides : begin + kThreads;
    const T* triangle = a + matrix * kN * kN;
    if (kIsSmall || (!kUnit && HasTinyPivot(triangle, kN, kN))) {
      T* sides = x + matrix * kRows * kColumns;
      const T* from = b + matrix * kRows * kColumns;
      for (i64 side = begin + threadIdx.x; side < end && turn == 0; side += kThreads) {
        for (i64 k = 0; k < kN; ++k) {
          const i64 at = kLeft ? side * kRows + k : side + k * kRows;
          sides[at] = from[at];
        }
      }
      SolveByDivision({kLeft != 0, kLower != 0, kTransposed != 0, kConjugated != 0, kUnit != 0}, kRows, kColumns,
                      triangle, sides, begin, end, turn * kSideColumns, (turn + 1) * kSideColumns);
    })";

// op(A) X = B or X op(A) = B, in the place of X.
class TriangularSolveKernel final : public MatrixKernel {
 public:
  explicit TriangularSolveKernel(const BoundInstruction& instruction)
      : MatrixKernel(instruction, Refusal::kInternal),
        rows_(instruction.operands[1].shape[0]),
        columns_(instruction.operands[1].shape[1]),
        left_(instruction.attrs->Flag("left_side")),
        lower_(instruction.attrs->Flag("lower")),
        unit_(instruction.attrs->Flag("unit_diagonal")),
        operation_(static_cast<int>(instruction.attrs->Int("transpose_a"))) {}

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(CheckSizes());
    if (!is_small_) RETURN_IF_ERROR(context.libraries->blas().status());
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kN", n_);
    text.Constant("kRows", rows_);
    text.Constant("kColumns", columns_);
    text.Constant("kLeft", left_);
    text.Constant("kLower", lower_);
    text.Constant("kTransposed", operation_ != kBlasNoTranspose);
    text.Constant("kConjugated", operation_ == kBlasConjugateTranspose);
    text.Constant("kUnit", unit_);
    text.Constant("kIsSmall", is_small_);
    const int64_t sides = left_ ? columns_ : rows_, groups = is_small_ ? 1 : CeilDiv(sides, MatrixText::kThreads);
    text.Constant("kSides", sides);
    text.Constant("kGroups", groups);
    const double in_turn = DivisionTurns::BlocksInTurn(batch_ * groups, context.compiler->printing().num_processors);
    const double steps = is_small_ || unit_ ? 1 : static_cast<double>(n_) * static_cast<double>(n_) / 2 * in_turn;
    turns_ = DivisionTurns::Of(n_, steps, context.most_division_steps);
    text.Constant("kSideColumns", turns_.columns);
    text.Add(kDivisionText);
    text.EachByBlockInTurns("divide", "const T* a, const T* b, T* x", batch_ * groups, turns_.count, kTriangularDivide);
    ASSIGN_OR_RETURN(divide_, context.compiler->Compile(text.Take()));
    return absl::OkStatus();
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const CuAddress a = launch.operands[0], b = launch.operands[1], x = launch.results[0];
    if (!is_small_) RETURN_IF_ERROR(EnqueueSolutions(launch, a, b, x));
    PaceBehind pace(launch.pace, is_small_ ? 0 : batch_);
    return divide_->Enqueue(launch.stream, {a, b, x}, &pace);
  }
  bool varies() const override { return turns_.count > 1; }
  int64_t workspace_bytes() const override { return is_small_ ? 0 : kTriangularBlasWorkspaceBytes; }
  std::string Describe() const override {
    return is_small_ ? "a block a matrix" : absl::StrCat("cublas trsm, ", batch_, " calls");
  }
  bool captures() const override { return true; }
  absl::Status MakeHandles(LibraryHandles* handles) const override {
    return is_small_ ? absl::OkStatus() : handles->MakeBlas();
  }

 private:
  absl::Status EnqueueSolutions(const Launch& launch, CuAddress a, CuAddress b, CuAddress x) const {
    const Driver& driver = launch.handles->libraries().driver();
    RETURN_IF_ERROR(StatusOf(driver,
                             driver.cuMemcpyDtoDAsync_v2(
                                 x, b, static_cast<size_t>(batch_ * rows_ * columns_ * SizeOf(dtype_)), launch.stream),
                             "cuMemcpyDtoDAsync"));
    ASSIGN_OR_RETURN(const BlasHandle handle, launch.handles->blas(launch.workspace, kTriangularBlasWorkspaceBytes));
    ASSIGN_OR_RETURN(const Blas* const blas, launch.handles->libraries().blas());
    for (int64_t i = 0; i < batch_; ++i) {
      RETURN_IF_ERROR(launch.BeforePart(i, batch_ + divide_->num_parts()));
      RETURN_IF_ERROR(Solve(*blas, handle, Pointer(Element(a, i * n_ * n_, dtype_)),
                            Pointer(Element(x, i * rows_ * columns_, dtype_))));
    }
    return absl::OkStatus();
  }

  absl::Status Solve(const Blas& blas, BlasHandle handle, const void* a, void* x) const {
    alignas(16) static constexpr float kOne[4] = {1};
    alignas(16) static constexpr double kOneWide[2] = {1};
    const void* const one = SizeOf(real_) == 4 ? static_cast<const void*>(kOne) : static_cast<const void*>(kOneWide);
    const auto call = [&](auto* trsm, absl::string_view name) {
      return StatusOfBlas(trsm(handle, left_ ? kBlasLeft : kBlasRight, lower_ ? kBlasLower : kBlasUpper, operation_,
                               unit_ ? kBlasUnit : kBlasNonUnit, rows_, columns_, one, a, n_, x, rows_),
                          name);
    };
    switch (dtype_) {
      case DType::kF32:
        return call(blas.cublasStrsm_v2_64, "cublasStrsm");
      case DType::kC64:
        return call(blas.cublasCtrsm_v2_64, "cublasCtrsm");
      case DType::kC128:
        return call(blas.cublasZtrsm_v2_64, "cublasZtrsm");
      default:
        return call(blas.cublasDtrsm_v2_64, "cublasDtrsm");
    }
  }

  const int64_t rows_, columns_;
  const bool left_, lower_, unit_;
  const int operation_;  // values of the attribute are cublas's
  const bool is_small_ = n_ <= kMostSmallSize && (left_ ? columns_ : rows_) <= kMostSmallSides;
  DivisionTurns turns_;
  std::shared_ptr<const LoadedKernel> divide_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeTriangularSolve(const BoundInstruction& instruction,
                                                            const KernelContext& context) {
  auto kernel = std::make_unique<TriangularSolveKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
