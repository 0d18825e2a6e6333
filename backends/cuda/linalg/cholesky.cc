#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/factorizations.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kCholeskyParameters[] = "const T* a, T* l, int* infos, u64 first, u64* addresses";

constexpr char kCholeskyCopyLower[] = R"(    const i64 row = i % kN, column = i / kN % kN;
    l[i] = row >= column ? a[i] : Number(0, 0);)";

constexpr char kCholeskyAddresses[] = "    addresses[i] = first + (u64)(i * kN * kN) * sizeof(T);";

constexpr char kCholeskyClearUpper[] = R"(    const i64 row = i % kN, column = i / kN % kN;
    if (row < column) l[i] = Number(0, 0);)";

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

// Up to so many rows the library factors a batch at once. Above, one matrix is work enough for the device, and the
// function of batches takes twice as long for it: 0.72 ms against 0.33 for 512 rows of F32 on an L40S, where 16 of them
// took 0.72 and 5.3 (published). The size alone decides, not the batch: a matrix has the same bits alone and in one.
constexpr int64_t kMostFactoredAtOnce = 256;
// A call takes so many matrices that their rows, cubed, are together at most so much: some 10 ms at 1 TFLOP/s.
constexpr int64_t kMostFactoredWork = int64_t{1} << 34;

// A = L L^H, in the place of L.
class CholeskyKernel final : public MatrixKernel {
 public:
  explicit CholeskyKernel(const BoundInstruction& instruction)
      : MatrixKernel(instruction, Refusal::kMatrixNotPositiveDefinite) {
    infos_ = Scratch(batch_ * 4);
    if (is_batched_) addresses_ = Scratch(batch_ * 8);
  }

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(CheckSizes());
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kN", n_);
    text.Each("copy_lower", kCholeskyParameters, batch_ * n_ * n_, kCholeskyCopyLower);
    text.EachByBlock("factor", kCholeskyParameters, is_small_ ? batch_ : 0, kCholeskySmall);
    text.Each("find", kCholeskyParameters, is_batched_ ? batch_ : 0, kCholeskyAddresses);
    ASSIGN_OR_RETURN(copy_, context.compiler->Compile(text.Take()));
    if (is_batched_) {
      RETURN_IF_ERROR(context.libraries->solver().status());
      MatrixText clear(dtype_, MostBlocks(context));
      clear.Constant("kN", n_);
      clear.Each("clear_upper", "T* l", batch_ * n_ * n_, kCholeskyClearUpper);
      ASSIGN_OR_RETURN(clear_, context.compiler->Compile(clear.Take()));
    }
    if (is_small_ || is_batched_) return Judge(context, true);
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
    const CuAddress addresses = addresses_.at(launch);
    RETURN_IF_ERROR(copy_->Enqueue(launch.stream, {launch.operands[0], l, infos_.at(launch), l, addresses},
                                   is_small_ ? launch.pace : nullptr));
    if (is_batched_) {
      RETURN_IF_ERROR(EnqueueBatch(launch, addresses));
      RETURN_IF_ERROR(clear_->Enqueue(launch.stream, {l}));
    } else if (!is_small_) {
      RETURN_IF_ERROR(EnqueueEach(launch, l));
    }
    return EnqueueJudgement(launch, l);
  }
  std::string Describe() const override {
    if (is_small_) return "a block a matrix";
    return is_batched_ ? absl::StrCat("cuSOLVER potrfBatched, batch of ", batch_)
                       : absl::StrCat("cuSOLVER potrf, ", batch_, " calls");
  }

 private:
  absl::Status EnqueueBatch(const Launch& launch, CuAddress addresses) const {
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    const auto [factor, name] =
        dtype_ == DType::kF32   ? std::pair(s.library->cusolverDnSpotrfBatched, "cusolverDnSpotrfBatched")
        : dtype_ == DType::kF64 ? std::pair(s.library->cusolverDnDpotrfBatched, "cusolverDnDpotrfBatched")
        : dtype_ == DType::kC64 ? std::pair(s.library->cusolverDnCpotrfBatched, "cusolverDnCpotrfBatched")
                                : std::pair(s.library->cusolverDnZpotrfBatched, "cusolverDnZpotrfBatched");
    const int n = static_cast<int>(n_);
    const int64_t at_once = kMostFactoredWork / (n_ * n_ * n_);
    for (int64_t b = 0; b < batch_; b += at_once) {
      RETURN_IF_ERROR(launch.BeforePart(b / at_once, CeilDiv(batch_, at_once)));
      RETURN_IF_ERROR(
          StatusOfSolver(factor(s.handle, kBlasLower, n, reinterpret_cast<void**>(addresses + 8 * b), n,
                                Info(infos_.at(launch), b), static_cast<int>(std::min(at_once, batch_ - b))),
                         name));
    }
    return absl::OkStatus();
  }
  absl::Status EnqueueEach(const Launch& launch, CuAddress l) const {
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
    return absl::OkStatus();
  }

  const bool is_small_ = n_ <= kMostSmallSize;
  const bool is_batched_ = !is_small_ && n_ <= kMostFactoredAtOnce;
  std::shared_ptr<const LoadedKernel> copy_;  // factors small matrices too
  std::shared_ptr<const LoadedKernel> clear_;
  ScratchPart addresses_;  // of the matrices
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
