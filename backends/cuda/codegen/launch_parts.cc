#include "backends/cuda/codegen/launch_parts.h"

#include <algorithm>
#include <cmath>

namespace tensord {
namespace {

// Steps by the kind of the instruction: elements come from a cache, and functions are of some dozens of instructions.
double StepsByKind(MicroKind kind) {
  switch (kind) {
    case MicroKind::kConstant:
      return 0;
    case MicroKind::kLoad:
      return 8;
    case MicroKind::kUnary:
      return 16;
    default:
      return 3;
  }
}

}  // namespace

int64_t CudaLaunchParts(double steps, int64_t blocks, const CudaOptions& options) {
  const double processors = options.num_processors;
  const double wanted = std::ceil(steps / (processors * static_cast<double>(options.steps_per_launch)));
  const double most = std::floor(static_cast<double>(blocks) / (processors * kLeastBlocksOfPart));
  return static_cast<int64_t>(std::max(1.0, std::min(wanted, most)));
}

double CudaSteps(const MicroInstruction& instruction) {
  const double words = static_cast<double>(std::max<int64_t>(1, SizeOf(instruction.dtype) / 4));
  return StepsByKind(instruction.kind) * words;
}

}  // namespace tensord
