#include "backends/cpu/joins/ways.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/joins/blocked_segments.h"
#include "backends/cpu/joins/boxed_products.h"
#include "backends/cpu/joins/chain_plan.h"
#include "backends/cpu/joins/lone_kernel.h"
#include "backends/cpu/joins/product_epilogue.h"
#include "backends/cpu/joins/shared_reductions.h"
#include "backends/cpu/joins/transformed_map.h"
#include "engine/base/status_macros.h"

namespace tensord::cpu {
namespace {

using MadeJoin = absl::StatusOr<std::unique_ptr<const Join>>;

std::unique_ptr<const Join> RunInBlocks(const std::optional<BlockPlan>& plan, const JoinContext& context) {
  if (!plan.has_value()) return nullptr;
  absl::StatusOr<std::unique_ptr<const BlockedSegments>> made = BlockedSegments::Create(*plan, context);
  return made.ok() ? *std::move(made) : nullptr;
}

bool HasLength(const std::optional<BlockPlan>& plan, bool is_pair) {
  return plan.has_value() && (plan->segments.size() == 2) == is_pair;
}

MadeJoin TryChain(JoinAttempt& attempt) {
  if (!HasLength(attempt.Chain(), /*is_pair=*/false)) return nullptr;
  return RunInBlocks(attempt.Chain(), attempt.context());
}

MadeJoin TryEpilogue(JoinAttempt& attempt) { return ProductEpilogue::Plan(attempt.segments(), attempt.context()); }

MadeJoin TryPair(JoinAttempt& attempt) {
  if (!HasLength(attempt.Chain(), /*is_pair=*/true)) return nullptr;
  return RunInBlocks(attempt.Chain(), attempt.context());
}

MadeJoin TryFactoredRows(JoinAttempt& attempt) {
  std::unique_ptr<const FactoredProduct>& product = attempt.Factored();
  if (product == nullptr || !product->packs_runs_of_rows()) return nullptr;
  return std::move(product);
}

MadeJoin TryBoxes(JoinAttempt& attempt) {
  return RunInBlocks(PlanProductJoin(attempt.segments(), attempt.context().limits), attempt.context());
}

MadeJoin TryTransforms(JoinAttempt& attempt) { return TransformedMap::Plan(attempt.segments(), attempt.context()); }

MadeJoin TryFactored(JoinAttempt& attempt) {
  std::unique_ptr<const FactoredProduct>& product = attempt.Factored();
  if (product == nullptr) return nullptr;
  return std::move(product);
}

MadeJoin TryReductions(JoinAttempt& attempt) { return SharedReductions::Plan(attempt.segments(), attempt.context()); }

MadeJoin TryKernel(JoinAttempt& attempt) { return LoneKernel::Make(attempt.first(), attempt.context()); }

// A chain of three or more saves more than an epilogue; of two it does not: the product and its epilogue go over the
// result as often, and pack operands once. Rows of factors that lie side by side are multiplied in less time than it
// takes to pack the other operand for each box; other factors are not.
constexpr std::array<JoinWay, kNumJoinWays> kWays = {{
    {"chain", "Runs three segments or more block by block: what passes between them stays in the cache.", &TryChain},
    {"epilogue", "Runs the elementwise kernel behind a product on each piece of it as that is made.", &TryEpilogue},
    {"pair", "Runs two segments block by block, as a chain, if no longer chain begins there.", &TryPair},
    {"factored_rows", "Multiplies the factors of a product's rows as it packs them, where these lie side by side.",
     &TryFactoredRows},
    {"boxes", "Makes the operands of a contraction a box at a time, by the products before it.", &TryBoxes},
    {"transforms", "Runs two Fourier transforms and the map between them on some lines after others.", &TryTransforms},
    {"factored", "Multiplies the factors of a contraction's operands as it packs them, however they lie.",
     &TryFactored},
    {"reductions", "Runs reductions of one tensor a slab of it at a time.", &TryReductions},
    {"kernel", "Runs one segment by itself.", &TryKernel},
}};
constexpr size_t kLast = kNumJoinWays - 1;

// Returns the position of the way; kNumJoinWays where there is none.
size_t PositionOf(absl::string_view name) {
  return static_cast<size_t>(
      std::find_if(kWays.begin(), kWays.end(), [&](const JoinWay& way) { return way.name == name; }) - kWays.begin());
}

}  // namespace

const std::optional<BlockPlan>& JoinAttempt::Chain() {
  if (!chain_.has_value()) chain_ = PlanChain(segments_, context_.limits);
  return *chain_;
}

std::unique_ptr<const FactoredProduct>& JoinAttempt::Factored() {
  if (!factored_.has_value()) factored_ = FactoredProduct::Plan(segments_, context_.epilogues);
  return *factored_;
}

const std::array<JoinWay, kNumJoinWays>& JoinWays() { return kWays; }

absl::Status CheckJoinNames(absl::Span<const std::string> names) {
  for (const std::string& name : names) {
    if (PositionOf(name) < kLast) continue;
    std::string known;
    for (size_t way = 0; way < kLast; ++way) absl::StrAppend(&known, way == 0 ? "" : ", ", kWays[way].name);
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is no way to join segments that can be left out; these are ", known));
  }
  return absl::OkStatus();
}

JoinWaySet JoinWaysNamed(absl::Span<const std::string> names) {
  JoinWaySet ways;
  for (const std::string& name : names) {
    if (const size_t way = PositionOf(name); way < kLast) ways.set(way);
  }
  return ways;
}

absl::StatusOr<Joiner::Joined> Joiner::Next() {
  while (empty_ < segments_.size() && (empty_ < next_ || !HasEmptyAxis(segments_[empty_].bound))) ++empty_;
  JoinAttempt attempt(segments_[next_], segments_.subspan(next_, empty_ - next_), context_);
  for (size_t way = 0; way < kNumJoinWays; ++way) {
    if (left_out_.test(way)) continue;
    ASSIGN_OR_RETURN(std::unique_ptr<const Join> join, kWays[way].plan(attempt));
    if (join == nullptr) continue;
    next_ += join->num_segments();
    return Joined{.join = std::move(join), .way = way};
  }
  return absl::InternalError("no way takes a segment by itself");
}

}  // namespace tensord::cpu
