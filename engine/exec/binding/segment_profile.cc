#include "engine/exec/binding/segment_profile.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/exec/program/segment_text.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// Returns the way in which the backend computes a product, as Explain tells it; empty if there is only one. Names of
// other kernels tell enough, and are names of spans.
std::string WayOf(const BoundProgram& bound, size_t segment) {
  if (!Is(*bound.segment(segment).op, CoreOp::kDotGeneral)) return "";
  for (const BoundProgram::Session& session : bound.sessions()) {
    if (segment < session.range.begin || segment >= session.range.end || session.prepared == nullptr) continue;
    return session.prepared->DescribeKernel(segment - session.range.begin);
  }
  return "";
}

}  // namespace

std::vector<SegmentProfile> MakeProfile(const RunTimes& times, std::chrono::steady_clock::time_point run_start) {
  size_t left = 0;
  for (const RunTimes::Part& part : times.parts) left += part.times.size();
  std::vector<SegmentProfile> profile;
  profile.reserve(std::min(left, kMaxProfileEntries));
  for (const RunTimes::Part& part : times.parts) {
    for (size_t i = 0; i < part.times.size(); ++i, --left) {
      const SegmentTime& time = part.times[i];
      const absl::Duration duration = absl::FromChrono(time.end - time.start);
      if (profile.size() == kMaxProfileEntries) {
        profile.back().duration += duration;
        continue;
      }
      SegmentProfile& entry =
          profile.emplace_back(SegmentProfile{.start = absl::FromChrono(time.start - run_start), .duration = duration});
      if (profile.size() == kMaxProfileEntries && left > 1) {
        entry.kernel = absl::StrCat(left, " further segments");
        continue;
      }
      const ExecInstruction& instruction = part.bound->segment(i);
      entry.kernel = absl::StrCat(KernelName(instruction), " ", TypesText(instruction, part.bound->slot_types()));
      const std::string way = WayOf(*part.bound, i);
      if (!way.empty()) absl::StrAppend(&entry.kernel, ", ", way);
      entry.nodes = NodesOf(instruction);
    }
  }
  return profile;
}

}  // namespace tensord
