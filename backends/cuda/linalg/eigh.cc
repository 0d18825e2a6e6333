#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/guard_text.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/small_kernel.h"
#include "backends/cuda/linalg/small_texts.h"
#include "backends/cuda/linalg/spectra.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kEighParameters[] = "const int* is_broken, const u64* largest, R* values, T* vectors";

constexpr char kEighValues[] = R"(    const i64 b = i / kN;
    values[i] = is_broken[b] ? RealOf(NotANumber()) : values[i] / ScaleOf(largest[b]);)";

constexpr char kEighVectors[] = R"(    if (is_broken[i / (kN * kN)]) vectors[i] = NotANumber();)";

// The library solves so many matrices at once, of elements that 32 bits count. A call is about 10 ms, since nothing
// stops it: 10,000 matrices of F64 of this size took 9.2 ms on an H200. Each processor has some, however large they
// are.
constexpr int64_t kMostSolvedAtOnce = 10000;
constexpr int64_t kSizeAtOnce = 32;
constexpr int64_t kLeastSolvedByProcessor = 2;
// Larger matrices fill the device one after the other.
constexpr int64_t kMostBatchedSize = 512;
// cuSOLVER 11.7.2 is the first whose batches of C64 are right where the lower triangle is read.
constexpr int kRightBatchesOfC64 = 11702;

// Eigenvalues of Hermitian matrices, in the place of the vectors: by the function of batches where the library has it.
// The size alone decides, not the batch: a matrix has the same bits alone and in one.
class EighKernel final : public MatrixKernel {
 public:
  explicit EighKernel(const BoundInstruction& instruction)
      : MatrixKernel(instruction, Refusal::kNoConvergence), has_vectors_(instruction.results.size() == 2) {
    infos_ = Scratch(batch_ * 4);
    guarded_.is_broken = Scratch(batch_ * 4);
    guarded_.largest = Scratch(batch_ * 8);
    if (!has_vectors_) a_ = Scratch(batch_ * n_ * n_ * SizeOf(dtype_));
  }

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(CheckSizes());
    at_once_ = SolvedAtOnce(context.compiler->printing().num_processors);
    ASSIGN_OR_RETURN(
        guarded_.load,
        context.compiler->Compile(MatrixGuardText(
            {.dtype = dtype_, .rows = n_, .columns = n_, .batch = batch_, .only_lower = true, .scales = true},
            MostBlocks(context))));
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kN", n_);
    text.Add(kScaleOfText);
    text.Each("write_values", kEighParameters, batch_ * n_, kEighValues);
    text.Each("write_vectors", kEighParameters, has_vectors_ ? batch_ * n_ * n_ : 0, kEighVectors);
    ASSIGN_OR_RETURN(finish_, context.compiler->Compile(text.Take()));
    ASSIGN_OR_RETURN(const Solver* const library, context.libraries->solver());
    ASSIGN_OR_RETURN(is_batched_, HasBatches(*library));
    ASSIGN_OR_RETURN(work_, AskSolver(context.libraries,
                                      is_batched_ ? "cusolverDnXsyevBatched_bufferSize" : "cusolverDnXsyevd_bufferSize",
                                      [&](const SolverScope& s, SolverWork* work) {
                                        return is_batched_
                                                   ? s.library->cusolverDnXsyevBatched_bufferSize(
                                                         s.handle, s.params, mode(), kBlasLower, n_, types_.type,
                                                         nullptr, n_, types_.real_type, nullptr, types_.type,
                                                         &work->device_bytes, &work->host_bytes, at_once_)
                                                   : s.library->cusolverDnXsyevd_bufferSize(
                                                         s.handle, s.params, mode(), kBlasLower, n_, types_.type,
                                                         nullptr, n_, types_.real_type, nullptr, types_.type,
                                                         &work->device_bytes, &work->host_bytes);
                                      }));
    device_work_ = Scratch(static_cast<int64_t>(work_.device_bytes));
    return Judge(context);
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const CuAddress values = launch.results[0], a = has_vectors_ ? launch.results[1] : a_.at(launch);
    RETURN_IF_ERROR(guarded_.Enqueue(launch, a));
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    RETURN_IF_ERROR(is_batched_ ? EnqueueBatch(launch, s, a, values) : EnqueueEach(launch, s, a, values));
    RETURN_IF_ERROR(
        finish_->Enqueue(launch.stream, {guarded_.is_broken.at(launch), guarded_.largest.at(launch), values, a}));
    return EnqueueJudgement(launch);
  }
  std::string Describe() const override {
    return is_batched_ ? absl::StrCat("cuSOLVER syevBatched, batch of ", batch_)
                       : absl::StrCat("cuSOLVER syevd, ", batch_, " calls");
  }

 private:
  int mode() const { return has_vectors_ ? kSolverVectors : kSolverNoVectors; }

  int64_t SolvedAtOnce(int64_t processors) const {
    const int64_t size = std::clamp<int64_t>(n_, kSizeAtOnce, kMostBatchedSize);
    const int64_t by_work = kMostSolvedAtOnce * kSizeAtOnce * kSizeAtOnce * kSizeAtOnce / (size * size * size);
    const int64_t by_elements = std::numeric_limits<int32_t>::max() / (size * size);
    return std::min({batch_, by_elements, std::max(by_work, kLeastSolvedByProcessor * processors)});
  }

  absl::StatusOr<bool> HasBatches(const Solver& library) const {
    if (library.cusolverDnXsyevBatched == nullptr || n_ > kMostBatchedSize) return false;
    if (dtype_ != DType::kC64) return true;
    int version = 0;
    RETURN_IF_ERROR(StatusOfSolver(library.cusolverGetVersion(&version), "cusolverGetVersion"));
    return version >= kRightBatchesOfC64;
  }

  absl::Status EnqueueBatch(const Launch& launch, const SolverScope& s, CuAddress a, CuAddress values) const {
    std::vector<char> host(work_.host_bytes);
    for (int64_t b = 0; b < batch_; b += at_once_) {
      RETURN_IF_ERROR(launch.BeforePart(b / at_once_, CeilDiv(batch_, at_once_)));
      RETURN_IF_ERROR(StatusOfSolver(
          s.library->cusolverDnXsyevBatched(
              s.handle, s.params, mode(), kBlasLower, n_, types_.type, Pointer(Element(a, b * n_ * n_, dtype_)), n_,
              types_.real_type, Pointer(Element(values, b * n_, real_)), types_.type, Pointer(device_work_.at(launch)),
              work_.device_bytes, host.data(), work_.host_bytes, Info(infos_.at(launch), b),
              std::min(at_once_, batch_ - b)),
          "cusolverDnXsyevBatched"));
    }
    return absl::OkStatus();
  }
  absl::Status EnqueueEach(const Launch& launch, const SolverScope& s, CuAddress a, CuAddress values) const {
    std::vector<char> host(work_.host_bytes);
    for (int64_t b = 0; b < batch_; ++b) {
      RETURN_IF_ERROR(launch.BeforePart(b, batch_));
      RETURN_IF_ERROR(StatusOfSolver(
          s.library->cusolverDnXsyevd(
              s.handle, s.params, mode(), kBlasLower, n_, types_.type, Pointer(Element(a, b * n_ * n_, dtype_)), n_,
              types_.real_type, Pointer(Element(values, b * n_, real_)), types_.type, Pointer(device_work_.at(launch)),
              work_.device_bytes, host.data(), work_.host_bytes, Info(infos_.at(launch), b)),
          "cusolverDnXsyevd"));
    }
    return absl::OkStatus();
  }

  const bool has_vectors_;
  bool is_batched_ = false;
  int64_t at_once_ = 1;  // matrices of a call of the function of batches; constant after Prepare
  GuardedMatrices guarded_;
  ScratchPart a_;  // of values alone
  SolverWork work_;
  ScratchPart device_work_;
  std::shared_ptr<const LoadedKernel> finish_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeEigh(const BoundInstruction& instruction, const KernelContext& context) {
  if (HasSmallMatrices(instruction)) return MakeSmallEigh(instruction, context, kMostSweeps);
  auto kernel = std::make_unique<EighKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
