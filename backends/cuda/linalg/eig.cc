#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/guard_text.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/spectra.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kEigParameters[] =
    "const int* is_broken, const u64* largest, const T* w, const T* v, Complex<R>* values, Complex<R>* vectors";

// The values of a real matrix are all real parts and then all imaginary ones.
constexpr char kEigFunctions[] = R"(
TENSORD_FN R RealPart(const T* w, i64 b, i64 j) { return RealOf(w[kIsComplex ? b * kN + j : b * 2 * kN + j]); }
TENSORD_FN R ImagPart(const T* w, i64 b, i64 j) {
  return kIsComplex ? ImagOf(w[b * kN + j]) : RealOf(w[b * 2 * kN + kN + j]);
}
)";

constexpr char kEigValues[] = R"(    const i64 b = i / kN, j = i % kN;
    const R scale = ScaleOf(largest[b]), nan = RealOf(NotANumber());
    values[i] = is_broken[b] ? Complex<R>{nan, nan}
                             : Complex<R>{RealPart(w, b, j) / scale, ImagPart(w, b, j) / scale};)";

// The columns of a conjugate pair are the real and the imaginary parts of the first value's vector, whose own imaginary
// part is positive.
constexpr char kEigVectors[] = R"(    const i64 b = i / (kN * kN), row = i % kN, j = i / kN % kN;
    const T* from = v + b * kN * kN + row;
    const R imag = ImagPart(w, b, j), nan = RealOf(NotANumber());
    Complex<R> x = {RealOf(from[j * kN]), ImagOf(from[j * kN])};
    if (!kIsComplex && imag > 0) x.im = RealOf(from[(j + 1) * kN]);
    if (!kIsComplex && imag < 0) x = Complex<R>{RealOf(from[(j - 1) * kN]), -RealOf(from[j * kN])};
    vectors[i] = is_broken[b] ? Complex<R>{nan, nan} : x;)";

// Eigenvalues of any square matrix.
class EigKernel final : public MatrixKernel {
 public:
  explicit EigKernel(const BoundInstruction& instruction)
      : MatrixKernel(instruction, Refusal::kNoConvergence), has_vectors_(instruction.results.size() == 2) {
    infos_ = Scratch(batch_ * 4);
    guarded_.is_broken = Scratch(batch_ * 4);
    guarded_.largest = Scratch(batch_ * 8);
    a_ = Scratch(batch_ * n_ * n_ * SizeOf(dtype_));
    w_ = Scratch(batch_ * values_size() * SizeOf(dtype_));
    if (has_vectors_) v_ = Scratch(batch_ * n_ * n_ * SizeOf(dtype_));
  }

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(CheckSizes());
    ASSIGN_OR_RETURN(const Solver* const library, context.libraries->solver());
    if (library->cusolverDnXgeev == nullptr || library->cusolverDnXgeev_bufferSize == nullptr) {
      return Refuse(Refusal::kUnsupportedOnDevice,
                    "this libcusolver has no cusolverDnXgeev, which eigenvalues of any matrix need; install the "
                    "libraries of CUDA 12.8 or later");
    }
    ASSIGN_OR_RETURN(guarded_.load, context.compiler->Compile(MatrixGuardText(
                                        {.dtype = dtype_, .rows = n_, .columns = n_, .batch = batch_, .scales = true},
                                        MostBlocks(context))));
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kN", n_);
    text.Add(kScaleOfText);
    text.Add(kEigFunctions);
    text.Each("write_values", kEigParameters, batch_ * n_, kEigValues);
    text.Each("write_vectors", kEigParameters, has_vectors_ ? batch_ * n_ * n_ : 0, kEigVectors);
    ASSIGN_OR_RETURN(finish_, context.compiler->Compile(text.Take()));
    ASSIGN_OR_RETURN(
        work_, AskSolver(context.libraries, "cusolverDnXgeev_bufferSize", [&](const SolverScope& s, SolverWork* work) {
          return s.library->cusolverDnXgeev_bufferSize(
              s.handle, s.params, kSolverNoVectors, mode(), n_, types_.type, nullptr, n_, types_.type, nullptr,
              types_.type, nullptr, 1, types_.type, nullptr, n_, types_.type, &work->device_bytes, &work->host_bytes);
        }));
    device_work_ = Scratch(static_cast<int64_t>(work_.device_bytes));
    return Judge(context);
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const CuAddress a = a_.at(launch), w = w_.at(launch), v = has_vectors_ ? v_.at(launch) : a;
    RETURN_IF_ERROR(guarded_.Enqueue(launch, a));
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    std::vector<char> host(work_.host_bytes);
    for (int64_t b = 0; b < batch_; ++b) {
      RETURN_IF_ERROR(launch.BeforePart(b, batch_));
      RETURN_IF_ERROR(StatusOfSolver(
          s.library->cusolverDnXgeev(s.handle, s.params, kSolverNoVectors, mode(), n_, types_.type,
                                     Pointer(Element(a, b * n_ * n_, dtype_)), n_, types_.type,
                                     Pointer(Element(w, b * values_size(), dtype_)), types_.type, nullptr, 1,
                                     types_.type, has_vectors_ ? Pointer(Element(v, b * n_ * n_, dtype_)) : nullptr, n_,
                                     types_.type, Pointer(device_work_.at(launch)), work_.device_bytes, host.data(),
                                     work_.host_bytes, Info(infos_.at(launch), b)),
          "cusolverDnXgeev"));
    }
    RETURN_IF_ERROR(
        finish_->Enqueue(launch.stream, {guarded_.is_broken.at(launch), guarded_.largest.at(launch), w, v,
                                         launch.results[0], has_vectors_ ? launch.results[1] : launch.results[0]}));
    return EnqueueJudgement(launch);
  }
  std::string Describe() const override { return absl::StrCat("cuSOLVER geev, ", batch_, " calls"); }

 private:
  int64_t values_size() const { return types_.type == types_.real_type ? 2 * n_ : n_; }
  int mode() const { return has_vectors_ ? kSolverVectors : kSolverNoVectors; }

  const bool has_vectors_;
  GuardedMatrices guarded_;
  ScratchPart a_, w_, v_;
  SolverWork work_;
  ScratchPart device_work_;
  std::shared_ptr<const LoadedKernel> finish_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeEig(const BoundInstruction& instruction, const KernelContext& context) {
  auto kernel = std::make_unique<EigKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
