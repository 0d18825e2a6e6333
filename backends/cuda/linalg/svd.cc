#include <algorithm>

#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/guard_text.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/small_kernel.h"
#include "backends/cuda/linalg/small_texts.h"
#include "backends/cuda/linalg/spectra.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kSvdParameters[] =
    "const int* is_broken, const u64* largest, R* values, const T* left, const T* right, T* u, T* vh";

constexpr char kSvdValues[] = R"(    const i64 b = i / kK;
    values[i] = is_broken[b] ? RealOf(NotANumber()) : values[i] / ScaleOf(largest[b]);)";

// Of a wide matrix the solver has the conjugate transpose: A^H = L S R^H is A = R S L^H. Sizes are those of U and V^H.
constexpr char kSvdWriteU[] = R"(    const i64 b = i / (kM * kColumns), row = i % kM, column = i / kM % kColumns;
    const T x = kTurns ? Conj(right[b * kM * kColumns + column + row * kColumns]) : u[i];
    u[i] = is_broken[b] ? NotANumber() : x;)";
constexpr char kSvdWriteVh[] = R"(    const i64 b = i / (kRows * kN), row = i % kRows, column = i / kRows % kN;
    const T x = kTurns ? Conj(left[b * kRows * kN + column + row * kN]) : vh[i];
    vh[i] = is_broken[b] ? NotANumber() : x;)";

// Singular values of any matrix by QR iterations: gesvd, which keeps the small ones of a matrix that is nearly
// singular. gesvdp is quicker and disturbs such a matrix.
class SvdKernel final : public MatrixKernel {
 public:
  explicit SvdKernel(const BoundInstruction& instruction)
      : MatrixKernel(instruction, Refusal::kNoConvergence),
        has_vectors_(instruction.results.size() == 3),
        is_full_(has_vectors_ && instruction.attrs->Flag("full")),
        turns_(m_ < n_),
        k_(std::min(m_, n_)),
        u_columns_(is_full_ ? m_ : k_),
        vh_rows_(is_full_ ? n_ : k_) {
    infos_ = Scratch(batch_ * 4);
    guarded_.is_broken = Scratch(batch_ * 4);
    guarded_.largest = Scratch(batch_ * 8);
    a_ = Scratch(batch_ * m_ * n_ * SizeOf(dtype_));
    if (!has_vectors_ || !turns_) return;
    left_ = Scratch(batch_ * n_ * vh_rows_ * SizeOf(dtype_));
    right_ = Scratch(batch_ * u_columns_ * m_ * SizeOf(dtype_));
  }

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(CheckSizes());
    ASSIGN_OR_RETURN(guarded_.load,
                     context.compiler->Compile(MatrixGuardText(
                         {.dtype = dtype_, .rows = m_, .columns = n_, .batch = batch_, .turns = turns_, .scales = true},
                         MostBlocks(context))));
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kM", m_);
    text.Constant("kN", n_);
    text.Constant("kK", k_);
    text.Constant("kColumns", u_columns_);
    text.Constant("kRows", vh_rows_);
    text.Constant("kTurns", turns_);
    text.Add(kScaleOfText);
    text.Each("write_values", kSvdParameters, batch_ * k_, kSvdValues);
    text.Each("write_u", kSvdParameters, has_vectors_ ? batch_ * m_ * u_columns_ : 0, kSvdWriteU);
    text.Each("write_vh", kSvdParameters, has_vectors_ ? batch_ * vh_rows_ * n_ : 0, kSvdWriteVh);
    ASSIGN_OR_RETURN(finish_, context.compiler->Compile(text.Take()));
    ASSIGN_OR_RETURN(
        work_, AskSolver(context.libraries, "cusolverDnXgesvd_bufferSize", [&](const SolverScope& s, SolverWork* work) {
          return s.library->cusolverDnXgesvd_bufferSize(s.handle, s.params, job(), job(), rows(), k_, types_.type,
                                                        nullptr, rows(), types_.real_type, nullptr, types_.type,
                                                        nullptr, rows(), types_.type, nullptr, k_, types_.type,
                                                        &work->device_bytes, &work->host_bytes);
        }));
    device_work_ = Scratch(static_cast<int64_t>(work_.device_bytes));
    return Judge(context);
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const CuAddress a = a_.at(launch), values = launch.results[has_vectors_ ? 1 : 0];
    // Places that are not read or written are any.
    const CuAddress u = has_vectors_ ? launch.results[0] : a, vh = has_vectors_ ? launch.results[2] : a;
    const CuAddress left = turns_ && has_vectors_ ? left_.at(launch) : u;
    const CuAddress right = turns_ && has_vectors_ ? right_.at(launch) : vh;
    RETURN_IF_ERROR(guarded_.Enqueue(launch, a));
    ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
    std::vector<char> host(work_.host_bytes);
    const int64_t left_size = rows() * (turns_ ? vh_rows_ : u_columns_), right_size = k_ * k_;
    for (int64_t b = 0; b < batch_; ++b) {
      RETURN_IF_ERROR(launch.BeforePart(b, batch_));
      const auto vectors = [&](CuAddress base, int64_t size) {
        return has_vectors_ ? Pointer(Element(base, b * size, dtype_)) : nullptr;
      };
      RETURN_IF_ERROR(StatusOfSolver(
          s.library->cusolverDnXgesvd(
              s.handle, s.params, job(), job(), rows(), k_, types_.type, Pointer(Element(a, b * m_ * n_, dtype_)),
              rows(), types_.real_type, Pointer(Element(values, b * k_, real_)), types_.type, vectors(left, left_size),
              rows(), types_.type, vectors(right, right_size), k_, types_.type, Pointer(device_work_.at(launch)),
              work_.device_bytes, host.data(), work_.host_bytes, Info(infos_.at(launch), b)),
          "cusolverDnXgesvd"));
    }
    RETURN_IF_ERROR(finish_->Enqueue(
        launch.stream, {guarded_.is_broken.at(launch), guarded_.largest.at(launch), values, left, right, u, vh}));
    return EnqueueJudgement(launch);
  }
  std::string Describe() const override { return absl::StrCat("cuSOLVER gesvd, ", batch_, " calls"); }

 private:
  int64_t rows() const { return std::max(m_, n_); }
  signed char job() const { return !has_vectors_ ? 'N' : is_full_ ? 'A' : 'S'; }

  const bool has_vectors_, is_full_;
  const bool turns_;  // the solver has at least as many rows as columns
  const int64_t k_, u_columns_, vh_rows_;
  GuardedMatrices guarded_;
  ScratchPart a_, left_, right_;
  SolverWork work_;
  ScratchPart device_work_;
  std::shared_ptr<const LoadedKernel> finish_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeSvd(const BoundInstruction& instruction, const KernelContext& context) {
  if (HasSmallMatrices(instruction)) return MakeSmallSvd(instruction, context, kMostSweeps);
  auto kernel = std::make_unique<SvdKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
