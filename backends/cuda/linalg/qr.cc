#include <algorithm>

#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/factorizations.h"
#include "backends/cuda/linalg/guard_text.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/small_kernel.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// Reflectors do not depend on the scale of the matrix, and R does.
constexpr char kRescaleR[] = R"(    const i64 row = i % kM, column = i / kM % kN;
    if (row <= column) packed[i] = Times(packed[i], 1 / ScaleOf(largest[i / (kM * kN)]));)";

// A kernel that begins with reflectors: R above them, as LAPACK's geqrf. Numbers that are not finite end no loop of it,
// and are left to spread.
class ReflectorsKernel : public MatrixKernel {
 protected:
  explicit ReflectorsKernel(const BoundInstruction& instruction)
      : MatrixKernel(instruction, Refusal::kInternal), k_(std::min(m_, n_)) {
    infos_ = Scratch(batch_ * 4);
    guarded_.is_broken = Scratch(batch_ * 4);
    guarded_.largest = Scratch(batch_ * 8);
  }

  absl::Status PrepareReflectors(const KernelContext& context) {
    RETURN_IF_ERROR(CheckSizes());
    const MatrixGuard guard = {
        .dtype = dtype_, .rows = m_, .columns = n_, .batch = batch_, .scales = true, .keeps_broken = true};
    ASSIGN_OR_RETURN(guarded_.load, context.compiler->Compile(MatrixGuardText(guard, MostBlocks(context))));
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kM", m_);
    text.Constant("kN", n_);
    text.Add(kScaleOfText);
    text.Each("rescale_r", "const u64* largest, T* packed", batch_ * m_ * n_, kRescaleR);
    ASSIGN_OR_RETURN(rescale_, context.compiler->Compile(text.Take()));
    ASSIGN_OR_RETURN(
        work_, AskSolver(context.libraries, "cusolverDnXgeqrf_bufferSize", [&](const SolverScope& s, SolverWork* work) {
          return s.library->cusolverDnXgeqrf_bufferSize(s.handle, s.params, m_, n_, types_.type, nullptr, m_,
                                                        types_.type, nullptr, types_.type, &work->device_bytes,
                                                        &work->host_bytes);
        }));
    device_work_ = Scratch(static_cast<int64_t>(work_.device_bytes));
    return Judge(context);
  }

  // Of A, into `packed` and `tau`: the first parts, one a matrix, of `parts`.
  absl::Status EnqueueReflectors(const Launch& launch, const SolverScope& s, CuAddress packed, CuAddress tau,
                                 int64_t parts) const {
    RETURN_IF_ERROR(guarded_.Enqueue(launch, packed));
    std::vector<char> host(work_.host_bytes);
    for (int64_t b = 0; b < batch_; ++b) {
      RETURN_IF_ERROR(launch.BeforePart(b, parts));
      RETURN_IF_ERROR(StatusOfSolver(
          s.library->cusolverDnXgeqrf(
              s.handle, s.params, m_, n_, types_.type, Pointer(Element(packed, b * m_ * n_, dtype_)), m_, types_.type,
              Pointer(Element(tau, b * k_, dtype_)), types_.type, Pointer(device_work_.at(launch)), work_.device_bytes,
              host.data(), work_.host_bytes, Info(infos_.at(launch), b)),
          "cusolverDnXgeqrf"));
    }
    RETURN_IF_ERROR(rescale_->Enqueue(launch.stream, {guarded_.largest.at(launch), packed}));
    return EnqueueJudgement(launch);
  }

  const int64_t k_;

 private:
  GuardedMatrices guarded_;
  std::shared_ptr<const LoadedKernel> rescale_;
  SolverWork work_;
  ScratchPart device_work_;
};

class HouseholderQrKernel final : public ReflectorsKernel {
 public:
  explicit HouseholderQrKernel(const BoundInstruction& instruction) : ReflectorsKernel(instruction) {}
  absl::Status Prepare(const KernelContext& context) { return PrepareReflectors(context); }

  absl::Status Enqueue(const Launch& launch) const override {
    ASSIGN_OR_RETURN(const SolverScope scope, SolverScopeOf(launch));
    return EnqueueReflectors(launch, scope, launch.results[0], launch.results[1], batch_);
  }
  std::string Describe() const override { return absl::StrCat("cuSOLVER geqrf, ", batch_, " calls"); }
};

constexpr char kQrParameters[] = "const T* __restrict__ packed, T* __restrict__ q, T* __restrict__ r";

constexpr char kQrWriteQ[] = R"(    const i64 b = i / (kM * kColumns), e = i % (kM * kColumns);
    q[i] = e / kM < kN ? packed[b * kM * kN + e] : Number(0, 0);)";

constexpr char kQrWriteR[] = R"(    const i64 b = i / (kColumns * kN), row = i % kColumns, column = i / kColumns % kN;
    r[i] = row <= column && row < kM ? packed[b * kM * kN + row + column * kM] : Number(0, 0);)";

// A = Q R; Q has as many columns as R has rows.
class QrKernel final : public ReflectorsKernel {
 public:
  explicit QrKernel(const BoundInstruction& instruction)
      : ReflectorsKernel(instruction), columns_(instruction.results[0].shape[1]) {
    packed_ = Scratch(batch_ * m_ * n_ * SizeOf(dtype_));
    tau_ = Scratch(batch_ * k_ * SizeOf(dtype_));
    unused_info_ = Scratch(4);
  }

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(PrepareReflectors(context));
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kM", m_);
    text.Constant("kN", n_);
    text.Constant("kColumns", columns_);
    text.Each("write_q", kQrParameters, batch_ * m_ * columns_, kQrWriteQ);
    text.Each("write_r", kQrParameters, batch_ * columns_ * n_, kQrWriteR);
    ASSIGN_OR_RETURN(take_apart_, context.compiler->Compile(text.Take()));
    ASSIGN_OR_RETURN(
        const SolverWork work,
        AskSolver(context.libraries, absl::StrCat(name(), "_bufferSize"), [&](const SolverScope& s, SolverWork* asked) {
          const auto ask = dtype_ == DType::kF32   ? s.library->cusolverDnSorgqr_bufferSize
                           : dtype_ == DType::kF64 ? s.library->cusolverDnDorgqr_bufferSize
                           : dtype_ == DType::kC64 ? s.library->cusolverDnCungqr_bufferSize
                                                   : s.library->cusolverDnZungqr_bufferSize;
          int elements = 0;
          const SolverResult result =
              ask(s.handle, Narrow(m_), Narrow(columns_), Narrow(k_), nullptr, Narrow(m_), nullptr, &elements);
          asked->device_bytes = static_cast<size_t>(std::max(elements, 0));
          return elements < 0 ? kSolverInvalidValue : result;  // more than 32 bits count
        }));
    work_elements_ = static_cast<int>(work.device_bytes);
    work_ = Scratch(work_elements_ * SizeOf(dtype_));
    return absl::OkStatus();
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const CuAddress q = launch.results[0];
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    const int64_t parts = 2 * batch_;
    RETURN_IF_ERROR(EnqueueReflectors(launch, s, packed_.at(launch), tau_.at(launch), parts));
    RETURN_IF_ERROR(take_apart_->Enqueue(launch.stream, {packed_.at(launch), q, launch.results[1]}));
    const auto multiply = dtype_ == DType::kF32   ? s.library->cusolverDnSorgqr
                          : dtype_ == DType::kF64 ? s.library->cusolverDnDorgqr
                          : dtype_ == DType::kC64 ? s.library->cusolverDnCungqr
                                                  : s.library->cusolverDnZungqr;
    for (int64_t b = 0; b < batch_; ++b) {
      RETURN_IF_ERROR(launch.BeforePart(batch_ + b, parts));
      RETURN_IF_ERROR(StatusOfSolver(
          multiply(s.handle, Narrow(m_), Narrow(columns_), Narrow(k_), Pointer(Element(q, b * m_ * columns_, dtype_)),
                   Narrow(m_), Pointer(Element(tau_.at(launch), b * k_, dtype_)), Pointer(work_.at(launch)),
                   work_elements_, Info(unused_info_.at(launch), 0)),
          name()));
    }
    return absl::OkStatus();
  }
  std::string Describe() const override { return absl::StrCat("cuSOLVER geqrf and orgqr, ", 2 * batch_, " calls"); }

 private:
  static int Narrow(int64_t size) { return static_cast<int>(size); }  // CheckSizes
  // Returns that of the function that multiplies reflectors.
  absl::string_view name() const {
    return dtype_ == DType::kF32   ? "cusolverDnSorgqr"
           : dtype_ == DType::kF64 ? "cusolverDnDorgqr"
           : dtype_ == DType::kC64 ? "cusolverDnCungqr"
                                   : "cusolverDnZungqr";
  }

  const int64_t columns_;
  ScratchPart packed_, tau_, work_;
  ScratchPart unused_info_;  // of orgqr, which looks at arguments alone
  int work_elements_ = 0;
  std::shared_ptr<const LoadedKernel> take_apart_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeQr(const BoundInstruction& instruction, const KernelContext& context) {
  if (HasSmallMatrices(instruction)) return MakeSmallQr(instruction, context);
  auto kernel = std::make_unique<QrKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeHouseholderQr(const BoundInstruction& instruction,
                                                          const KernelContext& context) {
  if (HasSmallMatrices(instruction)) return MakeSmallReflectors(instruction, context);
  auto kernel = std::make_unique<HouseholderQrKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
