#include "backends/cuda/linalg/matrix_kernel.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/families/linalg/host_matrix.h"
#include "engine/families/linalg/matrix_refusal.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int kRefusedArgument = 0xffffff;  // the verdict where the solver refuses an argument of ours

// LAPACK's info counts from 1; the first matrix wins, whichever thread is first.
constexpr char kJudge[] = R"(    i64 info = infos[i];
    if (kLooksForNaN && info == 0) {
      for (i64 k = kN - 1; k >= 0; --k) {
        if (isnan(RealOf(matrices[i * kN * kN + k * (kN + 1)]))) info = k + 1;
      }
    }
    if (info == 0) continue;
    if (info < 0 || info > kRefusedArgument) info = kRefusedArgument;
    atomicMin(verdict, (u64)i << 24 | (u64)info);)";

}  // namespace

MatrixKernel::MatrixKernel(const BoundInstruction& instruction, Refusal refusal)
    : dtype_(instruction.operands[0].dtype),
      real_(RealPartOf(dtype_)),
      types_(SolverTypesOf(dtype_)),
      m_(instruction.operands[0].shape[0]),
      n_(instruction.operands[0].shape[1]),
      batch_(BatchSize(instruction.operands[0].shape)),
      shape_(instruction.operands[0].shape),
      refusal_(refusal),
      name_(instruction.op->name) {}

ScratchPart MatrixKernel::Scratch(int64_t bytes) {
  const ScratchPart part = {scratch_bytes_};
  scratch_bytes_ += RoundUp(bytes, kAlignment);
  return part;
}

int64_t MatrixKernel::MostBlocks(const KernelContext& context) {
  return context.compiler->printing().num_processors * MatrixText::kBlocksPerProcessor;
}

absl::Status MatrixKernel::CheckSizes() const {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 64;  // times a block size it still fits
  if (m_ <= kMost && n_ <= kMost) return absl::OkStatus();
  return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("cuSOLVER counts in 32 bits, and an operand of ", name_,
                                                            " has matrices of ", m_, " x ", n_));
}

absl::StatusOr<SolverWork> MatrixKernel::AskSolver(
    Libraries* libraries, absl::string_view function,
    absl::FunctionRef<SolverResult(const SolverScope&, SolverWork*)> ask) const {
  const std::string task = absl::StrCat(name_, " of ", m_, " x ", n_, " ", Name(dtype_),
                                        batch_ > 1 ? absl::StrCat(", ", batch_, " matrices") : "");
  return cuda::AskSolver(libraries, task, function, ask);
}

absl::Status MatrixKernel::Judge(const KernelContext& context, bool broken_diagonals) {
  judges_ = true;
  MatrixText text(dtype_, MostBlocks(context));
  text.Constant("kN", n_);
  text.Constant("kLooksForNaN", broken_diagonals ? 1 : 0);
  text.Constant("kRefusedArgument", kRefusedArgument);
  text.Each("judge", "const int* infos, const T* matrices, u64* verdict", batch_, kJudge);
  ASSIGN_OR_RETURN(judge_, context.compiler->Compile(text.Take()));
  return absl::OkStatus();
}

absl::Status MatrixKernel::EnqueueJudgement(const Launch& launch, CuAddress results) const {
  const CuAddress infos = infos_.at(launch);
  return judge_->Enqueue(launch.stream, {infos, results == 0 ? infos : results, launch.verdict});
}

absl::Status MatrixKernel::Refused(const Verdict& verdict) const {
  if (verdict.reason == kRefusedArgument) {
    return absl::InternalError(absl::StrCat("cuSOLVER refuses an argument for matrix ", verdict.batch));
  }
  return RefuseMatrix(refusal_, shape_, verdict.batch, verdict.reason);
}

}  // namespace tensord::cuda
