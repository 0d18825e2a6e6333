#include "engine/exec/run_operations.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"

namespace tensord {
namespace {

double PointsOf(const MicroProgram& micro) {
  double points = 1;
  for (const MicroAxis& axis : micro.axes) points *= static_cast<double>(axis.size);
  return points;
}

int64_t AsInteger(double operations) {
  constexpr double kMost = 9e18;
  return operations < kMost ? static_cast<int64_t>(operations) : std::numeric_limits<int64_t>::max();
}

}  // namespace

double OperationsOf(const BoundInstruction& instruction) {
  if (instruction.micro != nullptr) {
    const auto computes = [](const MicroInstruction& step) {
      return step.level != MicroLevel::kUniform && step.kind != MicroKind::kLoad && step.kind != MicroKind::kConstant;
    };
    const auto& steps = instruction.micro->instructions;
    const auto count = std::count_if(steps.begin(), steps.end(), computes);
    return PointsOf(*instruction.micro) * static_cast<double>(std::max<std::ptrdiff_t>(1, count));
  }
  if (instruction.op->work != nullptr) {
    return instruction.op->work(
        {.attrs = *instruction.attrs, .operands = instruction.operands, .results = instruction.results});
  }
  double elements = 0;
  for (const ConcreteType& type : instruction.operands) elements += static_cast<double>(type.num_elements());
  for (const ConcreteType& type : instruction.results) elements += static_cast<double>(type.num_elements());
  return elements;
}

absl::Status CheckOperations(absl::Span<const SegmentInstruction> segments, int64_t most) {
  double all = 0, costliest = -1;
  const SegmentInstruction* found = nullptr;
  for (const SegmentInstruction& segment : segments) {
    const double operations = OperationsOf(segment.bound);
    all += operations;
    if (operations <= costliest) continue;
    costliest = operations;
    found = &segment;
  }
  if (AsInteger(all) <= most) return absl::OkStatus();
  return WithNode(RefuseLimit("run_operations", most, AsInteger(all),
                              absl::StrCat("one run takes too many operations on numbers, ", AsInteger(costliest),
                                           " of them in one kernel; compute in parts")),
                  found->node, found->written->name);
}

}  // namespace tensord
