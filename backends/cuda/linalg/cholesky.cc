#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/factorizations.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kCholeskyParameters[] = "const T* a, T* l, int* infos";

constexpr char kCholeskyCopyLower[] = R"(    const i64 row = i % kN, column = i / kN % kN;
    l[i] = row >= column ? a[i] : Number(0, 0);)";

// A block a matrix, in the place of the lower triangle, column by column.
constexpr char kCholeskySmall[] = R"(    T* matrix = l + i * kN * kN;
    int info = 0;
    for (i64 k = 0; k < kN; ++k) {
      const R square = RealOf(matrix[k * (kN + 1)]);
      __syncthreads();
      if (!(square > 0)) {
        info = (int)(k + 1);
        break;
      }
      const R root = sqrt(square);
      if (threadIdx.x == 0) matrix[k * (kN + 1)] = Number(root, 0);
      for (i64 r = k + 1 + threadIdx.x; r < kN; r += kThreads) {
        const T x = matrix[r + k * kN];
        matrix[r + k * kN] = Number(RealOf(x) / root, ImagOf(x) / root);
      }
      __syncthreads();
      const i64 left = kN - k - 1;
      for (i64 e = threadIdx.x; e < left * left; e += kThreads) {
        const i64 r = k + 1 + e % left, c = k + 1 + e / left;
        if (r < c) continue;
        matrix[r + c * kN] = MinusProduct(matrix[r + c * kN], matrix[r + k * kN], Conj(matrix[c + k * kN]));
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) infos[i] = info;
    __syncthreads();)";

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
    text.Each("copy_lower", kCholeskyParameters, batch_ * n_ * n_, kCholeskyCopyLower);
    text.EachByBlock("factor", kCholeskyParameters, is_small_ ? batch_ : 0, kCholeskySmall);
    ASSIGN_OR_RETURN(copy_, context.compiler->Compile(text.Take()));
    if (is_small_) return Judge(context, true);
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
    RETURN_IF_ERROR(
        copy_->Enqueue(launch.stream, {launch.operands[0], l, infos_.at(launch)}, is_small_ ? launch.pace : nullptr));
    if (is_small_) return EnqueueJudgement(launch, l);
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    std::vector<char> host(work_.host_bytes);
    for (int64_t b = 0; b < batch_; ++b) {
      RETURN_IF_ERROR(launch.BeforePart(b, batch_));
      RETURN_IF_ERROR(
          StatusOfSolver(s.library->cusolverDnXpotrf(s.handle, s.params, kBlasLower, n_, types_.type,
                                                     Pointer(Element(l, b * n_ * n_, dtype_)), n_, types_.type,
                                                     Pointer(device_work_.at(launch)), work_.device_bytes, host.data(),
                                                     work_.host_bytes, Info(infos_.at(launch), b)),
                         "cusolverDnXpotrf"));
    }
    return EnqueueJudgement(launch, l);
  }
  std::string Describe() const override {
    return is_small_ ? "a block a matrix" : absl::StrCat("cuSOLVER potrf, ", batch_, " calls");
  }

 private:
  const bool is_small_ = n_ <= kMostSmallSize;
  std::shared_ptr<const LoadedKernel> copy_;  // factors small matrices too
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
