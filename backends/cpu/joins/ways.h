#ifndef TENSORD_BACKENDS_CPU_JOINS_WAYS_H_
#define TENSORD_BACKENDS_CPU_JOINS_WAYS_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/cpu/joins/block_plan.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/factored_product.h"
#include "backends/cpu/joins/join.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// The segments from one on, and the facts that several ways ask about them, planned at the first question.
class JoinAttempt {
 public:
  // `segments` are those before the first with an empty axis: all ways but the last cut axes into parts.
  JoinAttempt(const SegmentInstruction& first, absl::Span<const SegmentInstruction> segments,
              const JoinContext& context)
      : first_(first), segments_(segments), context_(context) {}

  const SegmentInstruction& first() const { return first_; }
  absl::Span<const SegmentInstruction> segments() const { return segments_; }
  const JoinContext& context() const { return context_; }

  // Returns the longest chain of the first segments; nothing if none pays.
  const std::optional<BlockPlan>& Chain();
  // Returns the first segments as a product of factors; null if they are none. A way that runs it takes it.
  std::unique_ptr<const FactoredProduct>& Factored();

 private:
  const SegmentInstruction& first_;
  const absl::Span<const SegmentInstruction> segments_;
  const JoinContext& context_;
  std::optional<std::optional<BlockPlan>> chain_;
  std::optional<std::unique_ptr<const FactoredProduct>> factored_;
};

// A way in which segments run as one.
struct JoinWay {
  using Plan = absl::StatusOr<std::unique_ptr<const Join>>(JoinAttempt& attempt);

  absl::string_view name;
  absl::string_view summary;
  // Joins the first segments of the attempt; null if they do not run in this way. A join that cannot be made is null as
  // well, and left to be refused by the last way, which makes the kernel of one segment.
  Plan* plan;
};

// The ways in the order in which they are tried. The last one takes any segment.
inline constexpr size_t kNumJoinWays = 9;
const std::array<JoinWay, kNumJoinWays>& JoinWays();

// A set of ways, by position.
using JoinWaySet = std::bitset<kNumJoinWays>;

// Fails with INVALID_ARGUMENT if one of the names is no way's that may be left out: each but the last.
absl::Status CheckJoinNames(absl::Span<const std::string> names);
// Returns the ways of these names, which passed CheckJoinNames.
JoinWaySet JoinWaysNamed(absl::Span<const std::string> names);

// Joins the segments of a session, one join after the other: by the first way that fits and is not left out.
class Joiner {
 public:
  // A join, and the position of its way.
  struct Joined {
    std::unique_ptr<const Join> join;
    size_t way = 0;
  };

  // Borrows both.
  Joiner(absl::Span<const SegmentInstruction> segments, const JoinContext& context, JoinWaySet left_out)
      : segments_(segments), context_(context), left_out_(left_out) {}

  bool is_done() const { return next_ == segments_.size(); }
  // Returns the segments that Next joins from.
  absl::Span<const SegmentInstruction> rest() const { return segments_.subspan(next_); }
  // Refuses a segment that no kernel can be made of.
  absl::StatusOr<Joined> Next();

 private:
  const absl::Span<const SegmentInstruction> segments_;
  const JoinContext& context_;
  const JoinWaySet left_out_;
  size_t next_ = 0;
  size_t empty_ = 0;  // the next segment with an empty axis
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_WAYS_H_
