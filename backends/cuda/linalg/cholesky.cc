#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/factorizations.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kCholeskyCopyLower[] = R"(    const i64 row = i % kN, column = i / kN % kN;
    l[i] = row >= column ? a[i] : Number(0, 0);)";

// A = L L^H, in the place of L.
class CholeskyKernel final : public MatrixKernel {
 public:
  explicit CholeskyKernel(const BoundInstruction& instruction)
      : MatrixKernel(instruction, Refusal::kMatrixNotPositiveDefinite) {
    infos_ = Scratch(batch_ * 4);
  }

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(CheckSizes());
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kN", n_);
    text.Each("copy_lower", "const T* __restrict__ a, T* __restrict__ l", batch_ * n_ * n_, kCholeskyCopyLower);
    ASSIGN_OR_RETURN(copy_, context.compiler->Compile(text.Take()));
    ASSIGN_OR_RETURN(
        work_, AskSolver(context.libraries, "cusolverDnXpotrf_bufferSize", [&](const SolverScope& s, SolverWork* work) {
          return s.library->cusolverDnXpotrf_bufferSize(s.handle, s.params, kBlasLower, n_, types_.type, nullptr, n_,
                                                        types_.type, &work->device_bytes, &work->host_bytes);
        }));
    device_work_ = Scratch(static_cast<int64_t>(work_.device_bytes));
    return Judge(context, true);
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const CuAddress l = launch.results[0];
    RETURN_IF_ERROR(copy_->Enqueue(launch.stream, {launch.operands[0], l}));
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    std::vector<char> host(work_.host_bytes);
    for (int64_t b = 0; b < batch_; ++b) {
      RETURN_IF_ERROR(
          StatusOfSolver(s.library->cusolverDnXpotrf(s.handle, s.params, kBlasLower, n_, types_.type,
                                                     Pointer(Element(l, b * n_ * n_, dtype_)), n_, types_.type,
                                                     Pointer(device_work_.at(launch)), work_.device_bytes, host.data(),
                                                     work_.host_bytes, Info(infos_.at(launch), b)),
                         "cusolverDnXpotrf"));
    }
    return EnqueueJudgement(launch, l);
  }
  std::string Describe() const override { return absl::StrCat("cuSOLVER potrf, ", batch_, " calls"); }

 private:
  std::shared_ptr<const LoadedKernel> copy_;
  SolverWork work_;
  ScratchPart device_work_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeCholesky(const BoundInstruction& instruction,
                                                     const KernelContext& context) {
  auto kernel = std::make_unique<CholeskyKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
