#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/division_text.h"
#include "backends/cuda/linalg/lu_factors.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/solutions.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kSolveParameters[] =
    "const T* a, const T* b, T* factors, i64* pivots, int* infos, const int* is_broken, T* x";

// A block a matrix: thread by thread a right-hand side.
constexpr char kSolveDivide[] = R"(    T* packed = factors + i * kN * kN;
    if (kIsSmall || HasTinyPivot(packed, kN, kN)) {
      for (i64 e = threadIdx.x; e < kN * kN && !kIsSmall; e += kThreads) packed[e] = a[i * kN * kN + e];
      __syncthreads();
      FactorByDivision(kN, kN, packed, pivots + i * kN, infos + i);
      T* sides = x + i * kN * kColumns;
      for (i64 column = threadIdx.x; column < kColumns; column += kThreads) {
        T* side = sides + column * kN;
        for (i64 r = 0; r < kN; ++r) side[r] = b[(i * kColumns + column) * kN + r];
        for (i64 r = 0; r < kN; ++r) {
          const i64 pivot = pivots[i * kN + r] - 1;
          const T swapped = side[r];
          side[r] = side[pivot];
          side[pivot] = swapped;
        }
      }
      __syncthreads();
      SolveByDivision({true, true, false, false, true}, kN, kColumns, packed, sides);
      SolveByDivision({true, false, false, false, false}, kN, kColumns, packed, sides);
    })";

constexpr char kSolveBreak[] = R"(    if (is_broken[i / (kN * kColumns)]) x[i] = NotANumber();)";

// A X = B, by LU factors.
class SolveKernel final : public LuKernel {
 public:
  explicit SolveKernel(const BoundInstruction& instruction)
      : LuKernel(instruction, Refusal::kMatrixSingular), columns_(instruction.operands[1].shape[1]) {
    unused_infos_ = Scratch(4);
  }

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(PrepareFactors(context, is_small_));
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kN", n_);
    text.Constant("kColumns", columns_);
    text.Constant("kIsSmall", is_small_);
    text.Add(kDivisionText);
    text.EachByBlock("divide", kSolveParameters, batch_, kSolveDivide);
    text.Each("break_results", kSolveParameters, batch_ * n_ * columns_, kSolveBreak);
    ASSIGN_OR_RETURN(finish_, context.compiler->Compile(text.Take()));
    return Judge(context);
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const CuAddress a = launch.operands[0], b = launch.operands[1], x = launch.results[0];
    RETURN_IF_ERROR(EnqueueFactors(launch, 2 * batch_));
    if (!is_small_) RETURN_IF_ERROR(EnqueueSolutions(launch, b, x));
    RETURN_IF_ERROR(finish_->Enqueue(
        launch.stream,
        {a, b, factors_.at(launch), pivots_.at(launch), infos_.at(launch), guarded_.is_broken.at(launch), x},
        is_small_ ? launch.pace : nullptr));
    return EnqueueJudgement(launch);
  }
  std::string Describe() const override {
    return is_small_ ? "a block a matrix" : absl::StrCat("cuSOLVER getrf and getrs, ", 2 * batch_, " calls");
  }

 private:
  absl::Status EnqueueSolutions(const Launch& launch, CuAddress b, CuAddress x) const {
    const Driver& driver = launch.handles->libraries().driver();
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    RETURN_IF_ERROR(StatusOf(
        driver,
        driver.cuMemcpyDtoDAsync_v2(x, b, static_cast<size_t>(batch_ * n_ * columns_ * SizeOf(dtype_)), launch.stream),
        "cuMemcpyDtoDAsync"));
    for (int64_t i = 0; i < batch_; ++i) {
      RETURN_IF_ERROR(launch.BeforePart(batch_ + i, 2 * batch_));
      const CuAddress pivots = pivots_.at(launch) + static_cast<CuAddress>(i * n_ * 8);
      RETURN_IF_ERROR(StatusOfSolver(
          s.library->cusolverDnXgetrs(
              s.handle, s.params, kBlasNoTranspose, n_, columns_, types_.type,
              Pointer(Element(factors_.at(launch), i * n_ * n_, dtype_)), n_, reinterpret_cast<const int64_t*>(pivots),
              types_.type, Pointer(Element(x, i * n_ * columns_, dtype_)), n_, Info(unused_infos_.at(launch), 0)),
          "cusolverDnXgetrs"));
    }
    return absl::OkStatus();
  }

  const int64_t columns_;
  const bool is_small_ = n_ <= kMostSmallSize && columns_ <= kMostSmallSides;
  ScratchPart unused_infos_;  // of getrs, which looks at arguments alone
  std::shared_ptr<const LoadedKernel> finish_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeSolve(const BoundInstruction& instruction, const KernelContext& context) {
  auto kernel = std::make_unique<SolveKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
