#include "engine/exec/binding/run_operations.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"

namespace tensord {
namespace {

// A kernel goes to each index of its kept axes, also where there is nothing to reduce.
double PointsOf(const MicroProgram& micro) {
  double all = 1, kept = 1;
  for (const MicroAxis& axis : micro.axes) {
    all *= static_cast<double>(axis.size);
    if (!axis.is_reduced) kept *= static_cast<double>(axis.size);
  }
  return std::max(all, kept);
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

void RunOperations::Add(const RunOperations& other) {
  all += other.all;
  if (written != nullptr && other.most <= most) return;
  most = other.most;
  node = other.node;
  written = other.written;
}

RunOperations OperationsOf(absl::Span<const SegmentInstruction> segments) {
  RunOperations run;
  for (const SegmentInstruction& segment : segments) {
    if (StopRequested()) break;
    const double operations = OperationsOf(segment.bound);
    run.Add({.all = operations, .most = operations, .node = segment.node, .written = segment.written});
  }
  return run;
}

absl::Status CheckOperations(const RunOperations& run, int64_t most) {
  if (AsInteger(run.all) <= most) return absl::OkStatus();
  return WithNode(RefuseLimit("run_operations", most, AsInteger(run.all),
                              absl::StrCat("one run takes too many operations on numbers, ", AsInteger(run.most),
                                           " of them in one kernel; compute in parts")),
                  run.node, run.written->name);
}

}  // namespace tensord
