#include "engine/families/fft/fft_steps.h"

#include <cmath>

namespace tensord {

std::vector<size_t> FftOrder(FftKind kind, size_t num_axes) {
  std::vector<size_t> order;
  for (size_t i = 0; i < num_axes; ++i) order.push_back(kind == FftKind::kIrfft ? i : num_axes - 1 - i);
  return order;
}

std::vector<FftStep> FftSteps(const Attributes& attrs, absl::Span<const int64_t> operand_shape) {
  const FftKind kind = static_cast<FftKind>(attrs.Int("kind"));
  const std::vector<int64_t>&axes = attrs.Ints("axes"), &lengths = attrs.Ints("lengths");
  std::vector<FftStep> steps;
  for (size_t i : FftOrder(kind, axes.size())) {
    const bool is_last = i + 1 == axes.size();
    const int64_t size = operand_shape[static_cast<size_t>(axes[i])];
    FftStep step{.axis = axes[i], .length = lengths.empty() ? size : lengths[i], .kind = kind};
    if (kind == FftKind::kRfft && !is_last) step.kind = FftKind::kFft;
    if (kind == FftKind::kIrfft && !is_last) step.kind = FftKind::kIfft;
    if (step.kind == FftKind::kIrfft && lengths.empty()) step.length = 2 * (size - 1);
    steps.push_back(step);
  }
  return steps;
}

double FftScale(const Attributes& attrs, const FftStep& step) {
  const double n = static_cast<double>(step.length);
  switch (static_cast<FftNorm>(attrs.Int("norm"))) {
    case FftNorm::kBackward:
      return step.forward() ? 1 : 1 / n;
    case FftNorm::kOrtho:
      return 1 / std::sqrt(n);
    case FftNorm::kForward:
      return step.forward() ? 1 / n : 1;
  }
  return 1;
}

}  // namespace tensord
