#ifndef TENSORD_BACKENDS_CPU_FFT_LINE_STEP_H_
#define TENSORD_BACKENDS_CPU_FFT_LINE_STEP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "backends/cpu/fft/lanes/lanes.h"

namespace tensord::cpu {

class FftTransforms;
class ThreadPool;

// A transform along one axis of a tensor.
struct FftLineTask {
  bool is_double = false;
  FftForm form = FftForm::kComplex;
  int64_t length = 1;  // of the transform: of the real side of a real one
  FftLines lines;      // all but the addresses
  int64_t num_lines = 0;
};

// Tells whether it runs lines side by side.
bool RunsInLanes(const FftLineTask& task);

// A transform along one axis, bound to its sizes. Short lines are transformed side by side in vectors, long ones by
// columns and rows (Bailey's four steps), those of an awkward length as convolutions (Bluestein), real ones of even
// length as half as many complex numbers. Immutable; its tables are shared with other steps.
class FftLineStep {
 public:
  // Fails with UNSUPPORTED_ON_DEVICE if the line is too long. Takes its tables from there, and keeps them itself.
  static absl::StatusOr<std::unique_ptr<const FftLineStep>> Create(const FftLineTask& task, FftTransforms& transforms);
  virtual ~FftLineStep() = default;

  virtual int64_t scratch_bytes() const = 0;
  // `scratch` is aligned to 64. `in` and `out` may be the same where element sizes and lengths agree.
  virtual void Run(const void* in, void* out, char* scratch, ThreadPool* pool) const = 0;
  virtual std::string Describe() const = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FFT_LINE_STEP_H_
