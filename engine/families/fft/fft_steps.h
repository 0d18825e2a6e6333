#ifndef TENSORD_ENGINE_FAMILIES_FFT_FFT_STEPS_H_
#define TENSORD_ENGINE_FAMILIES_FFT_FFT_STEPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/attribute.h"

namespace tensord {

enum class FftKind : int64_t { kUnspecified, kFft, kIfft, kRfft, kIrfft };
enum class FftNorm : int64_t { kBackward, kOrtho, kForward };

// One transform along one axis.
struct FftStep {
  int64_t axis = 0;
  int64_t length = 0;  // of the transform: of the real side of a real one
  FftKind kind = FftKind::kUnspecified;

  bool forward() const { return kind == FftKind::kFft || kind == FftKind::kRfft; }
  int64_t result_size() const { return kind == FftKind::kRfft ? length / 2 + 1 : length; }
};

// Positions in `axes` in the order in which they are transformed, NumPy's: the last first, but for IRFFT the last last,
// which makes numbers real.
std::vector<size_t> FftOrder(FftKind kind, size_t num_axes);

// Returns the steps of a node for an operand of these sizes, in order. Needs attributes that the type rule has
// accepted.
std::vector<FftStep> FftSteps(const Attributes& attrs, absl::Span<const int64_t> operand_shape);

// Returns the factor of a step's values.
double FftScale(const Attributes& attrs, const FftStep& step);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_FFT_FFT_STEPS_H_
