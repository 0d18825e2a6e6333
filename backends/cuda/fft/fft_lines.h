#ifndef TENSORD_BACKENDS_CUDA_FFT_FFT_LINES_H_
#define TENSORD_BACKENDS_CUDA_FFT_FFT_LINES_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/libraries/libraries.h"
#include "engine/base/mutex.h"

namespace tensord::cuda {

// Transforms of dense lines, one after the other.
struct FftLinesTask {
  int64_t length = 1;  // of the real side, where there is one
  int64_t lines = 1;
  int type = 0;  // kFftC2C and its kin
  bool forward = true;
};

// A plan of cuFFT, with memory that each run brings. Thread-safe: a plan may be on its way on several streams if each
// has memory of its own, but one thread at a time sets it up.
class FftLines {
 public:
  // The calling thread has entered the context. UNSUPPORTED_ON_DEVICE for a length that cuFFT does not take.
  static absl::StatusOr<std::unique_ptr<FftLines>> Create(const FftLinesTask& task, const KernelContext& context);
  ~FftLines();
  FftLines(const FftLines&) = delete;
  FftLines& operator=(const FftLines&) = delete;

  // Enqueues the transforms. Both sides have the alignment of a complex number. A transform to real numbers loses `in`.
  absl::Status Enqueue(CuStream stream, CuAddress in, CuAddress out, CuAddress work) const;
  int64_t work_bytes() const { return work_bytes_; }

 private:
  FftLines(std::shared_ptr<Context> context, const Fft* library, bool forward)
      : context_(std::move(context)), library_(library), forward_(forward) {}
  absl::Status Open(const FftLinesTask& task);

  const std::shared_ptr<Context> context_;
  const Fft* const library_;
  const bool forward_;
  mutable Mutex mutex_;
  FftPlan plan_ = -1;  // constant after Create, like the next
  bool has_plan_ = false;
  int64_t work_bytes_ = 0;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_FFT_FFT_LINES_H_
