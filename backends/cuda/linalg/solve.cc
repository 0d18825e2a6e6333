#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/division_text.h"
#include "backends/cuda/linalg/lu_factors.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/solutions.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kSolveParameters[] =
    "const T* a, const T* b, T* factors, i64* pivots, int* infos, const int* is_broken, int* is_divided, T* x";

// A right-hand side in the order of the pivots, as a thread makes it.
constexpr char kSolveSide[] = R"(
__device__ inline void PlaceSide(const T* b, const i64* pivots, T* side) {
  for (i64 r = 0; r < kN; ++r) side[r] = b[r];
  for (i64 r = 0; r < kN; ++r) {
    const i64 pivot = pivots[r] - 1;
    const T swapped = side[r];
    side[r] = side[pivot];
    side[pivot] = swapped;
  }
}
)";

// A block a matrix: thread by thread a right-hand side.
constexpr char kSolveSmall[] = R"(    T* packed = factors + i * kN * kN;
    FactorByDivision(kN, kN, packed, pivots + i * kN, infos + i, 0, kN);
    T* sides = x + i * kN * kColumns;
    for (i64 column = threadIdx.x; column < kColumns; column += kThreads) {
      PlaceSide(b + (i * kColumns + column) * kN, pivots + i * kN, sides + column * kN);
    }
    __syncthreads();
    SolveByDivision({true, true, false, false, true}, kN, kColumns, packed, sides, 0, kColumns, 0, kN);
    SolveByDivision({true, false, false, false, false}, kN, kColumns, packed, sides, 0, kColumns, 0, kN);)";

// A block for some sides of a matrix that was divided.
constexpr char kSolveDivided[] = R"(    const i64 matrix = i / kGroups, begin = i % kGroups * kThreads;
    const i64 end = begin + kThreads < kColumns ? begin + kThreads : kColumns;
    if (is_divided[matrix]) {
      const T* packed = factors + matrix * kN * kN;
      T* sides = x + matrix * kN * kColumns;
      for (i64 column = begin + threadIdx.x; column < end && turn == 0; column += kThreads) {
        PlaceSide(b + (matrix * kColumns + column) * kN, pivots + matrix * kN, sides + column * kN);
      }
      for (i64 pass = turn * kPassesOfTurn; pass < (turn + 1) * kPassesOfTurn; ++pass) {
        const bool lower = pass < kSideTurns;
        const i64 first = (lower ? pass : pass - kSideTurns) * kSideColumns;
        SolveByDivision({true, lower, false, false, lower}, kN, kColumns, packed, sides, begin, end, first,
                        first + kSideColumns);
      }
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
    text.Constant("kColumns", columns_);
    AddDivision(context, kSolveParameters, kSolveSide, is_small_ ? kSolveSmall : nullptr, &text);
    if (!is_small_) AddSides(context, &text);
    text.Each("break_results", kSolveParameters, batch_ * n_ * columns_, kSolveBreak);
    ASSIGN_OR_RETURN(finish_, context.compiler->Compile(text.Take()));
    return Judge(context);
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const CuAddress a = launch.operands[0], b = launch.operands[1], x = launch.results[0];
    const int64_t calls = is_small_ ? 0 : 2 * batch_, parts = calls + finish_->num_parts();
    RETURN_IF_ERROR(EnqueueFactors(launch, parts));
    if (!is_small_) RETURN_IF_ERROR(EnqueueSolutions(launch, b, x, parts));
    PaceBehind pace(launch.pace, calls);
    RETURN_IF_ERROR(finish_->Enqueue(launch.stream,
                                     {a, b, factors_.at(launch), pivots_.at(launch), infos_.at(launch),
                                      guarded_.is_broken.at(launch), is_divided_.at(launch), x},
                                     &pace));
    return EnqueueJudgement(launch);
  }
  std::string Describe() const override {
    return is_small_ ? "a block a matrix" : absl::StrCat("cuSOLVER getrf and getrs, ", 2 * batch_, " calls");
  }

  bool varies() const override { return LuKernel::varies() || side_turns_.count > 1; }

 private:
  void AddSides(const KernelContext& context, MatrixText* text) {
    const int64_t groups = CeilDiv(columns_, MatrixText::kThreads);
    const double in_turn = DivisionTurns::BlocksInTurn(batch_ * groups, context.compiler->printing().num_processors);
    const double steps = static_cast<double>(n_) * static_cast<double>(n_) / 2;
    side_turns_ = DivisionTurns::Of(n_, steps * in_turn, context.most_division_steps);
    const int64_t passes = side_turns_.count == 1 ? 2 : 1;  // one for each triangle
    text->Constant("kGroups", groups);
    text->Constant("kSideTurns", side_turns_.count);
    text->Constant("kSideColumns", side_turns_.columns);
    text->Constant("kPassesOfTurn", passes);
    text->EachByBlockInTurns("divide_sides", kSolveParameters, batch_ * groups, 2 * side_turns_.count / passes,
                             kSolveDivided);
  }

  absl::Status EnqueueSolutions(const Launch& launch, CuAddress b, CuAddress x, int64_t parts) const {
    const Driver& driver = launch.handles->libraries().driver();
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    RETURN_IF_ERROR(StatusOf(
        driver,
        driver.cuMemcpyDtoDAsync_v2(x, b, static_cast<size_t>(batch_ * n_ * columns_ * SizeOf(dtype_)), launch.stream),
        "cuMemcpyDtoDAsync"));
    for (int64_t i = 0; i < batch_; ++i) {
      RETURN_IF_ERROR(launch.BeforePart(batch_ + i, parts));
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
  DivisionTurns side_turns_;
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
