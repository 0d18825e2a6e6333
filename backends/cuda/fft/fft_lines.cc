#include "backends/cuda/fft/fft_lines.h"

#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {

absl::StatusOr<std::unique_ptr<FftLines>> FftLines::Create(const FftLinesTask& task, const KernelContext& context) {
  ASSIGN_OR_RETURN(const Fft* const library, context.libraries->fft());
  std::unique_ptr<FftLines> lines(new FftLines(context.compiler->context(), library, task.forward));
  RETURN_IF_ERROR(lines->Open(task));
  return lines;
}

absl::Status FftLines::Open(const FftLinesTask& task) {
  RETURN_IF_ERROR(StatusOfFft(library_->cufftCreate(&plan_), "cufftCreate"));
  has_plan_ = true;
  RETURN_IF_ERROR(StatusOfFft(library_->cufftSetAutoAllocation(plan_, 0), "cufftSetAutoAllocation"));
  long long length = task.length;
  size_t bytes = 0;
  const FftResult made =
      library_->cufftMakePlanMany64(plan_, 1, &length, nullptr, 1, 0, nullptr, 1, 0, task.type, task.lines, &bytes);
  if (made == kFftInvalidSize || made == kFftInvalidValue || made == kFftNotSupported) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("cuFFT has no transform of ", task.lines, " lines of ", task.length, " numbers: ",
                               StatusOfFft(made, "cufftMakePlanMany64").message(), "; compute it on the device cpu"));
  }
  work_bytes_ = static_cast<int64_t>(bytes);
  return StatusOfFft(made, "cufftMakePlanMany64");
}

FftLines::~FftLines() {
  if (has_plan_ && context_->Enter().ok()) library_->cufftDestroy(plan_);
}

absl::Status FftLines::Enqueue(CuStream stream, CuAddress in, CuAddress out, CuAddress work) const {
  const auto pointer = [](CuAddress address) { return reinterpret_cast<void*>(address); };
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(StatusOfFft(library_->cufftSetStream(plan_, stream), "cufftSetStream"));
  RETURN_IF_ERROR(StatusOfFft(library_->cufftSetWorkArea(plan_, pointer(work)), "cufftSetWorkArea"));
  return StatusOfFft(library_->cufftXtExec(plan_, pointer(in), pointer(out), forward_ ? kFftForward : kFftInverse),
                     "cufftXtExec");
}

}  // namespace tensord::cuda
