#include "backends/cpu/joins/chain_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tensord::cpu {
namespace {

// The least part of a block's bound: in smaller blocks the calls cost more than memory would.
constexpr int64_t kLeastBlockPart = 16;
// The multiplications of a contraction for each element that it takes from the cache instead of from memory.
constexpr double kMostChainMultiplications = 512;
constexpr size_t kMostSegments = 64;  // bounds the time of planning

// Adds the next segment to a chain in so many blocks; false if it cannot be cut, or does not pay.
bool AddNext(int64_t num_blocks, BlockPlanner* planner) {
  const SegmentInstruction& segment = planner->next();
  std::optional<SegmentBlocks> cut = SegmentBlocks::Cut(segment.bound, num_blocks);
  if (!cut.has_value()) return false;
  for (size_t k = 0; k < segment.operands.size(); ++k) {
    if (planner->Makes(segment.operands[k]) && !cut->ReadsPiece(k)) return false;
  }
  BlockTraffic traffic = planner->TrafficOf(*cut);
  if (planner->num_added() == 0) {
    // A lone elementwise op writes over its operand, which saves as much memory.
    if (cut->is_elementwise()) return false;
    for (const ConcreteType& result : segment.bound.results) traffic.Pass(result);
  }
  if (traffic.passed_bytes == 0 || !traffic.Pays(cut->multiplications(), kMostChainMultiplications)) return false;
  planner->Add(*std::move(cut));
  return true;
}

// Adds as many segments as can be had, and returns how many of them are a chain.
size_t AddAll(size_t num_segments, int64_t num_blocks, BlockPlanner* planner) {
  size_t length = 0;
  while (planner->num_added() < std::min(num_segments, kMostSegments) && AddNext(num_blocks, planner)) {
    if (planner->IsClosed()) length = planner->num_added();
  }
  return length;
}

// Tells whether a value of so many bytes or more passes between the segments.
bool PassesLargeValue(absl::Span<const SegmentInstruction> segments, int64_t least_bytes) {
  const auto is_large = [&](const ConcreteType& type) { return type.num_bytes() >= least_bytes; };
  return std::any_of(segments.begin(), segments.end() - 1, [&](const SegmentInstruction& segment) {
    return std::any_of(segment.bound.results.begin(), segment.bound.results.end(), is_large);
  });
}

// Returns the longest chain, and of several the one with the largest blocks. The first segment passes a value of that
// type on. Segments have their axes merged in ways of their own, so the number of blocks is all that there is to
// choose.
std::optional<BlockPlan> LongestChain(absl::Span<const SegmentInstruction> segments, const ConcreteType& passed,
                                      int64_t block_bytes, const ChainLimits& limits) {
  std::optional<BlockPlan> best;
  const int64_t most_blocks = passed.num_bytes() / std::max<int64_t>(1, block_bytes / kLeastBlockPart);
  for (const int64_t blocks : BlockCounts(passed, most_blocks)) {
    BlockPlanner planner(segments, blocks);
    const size_t length = AddAll(segments.size(), blocks, &planner);
    if (length < 2 || (best.has_value() && length <= best->segments.size())) continue;
    if (!PassesLargeValue(segments.first(length), limits.least_bytes)) continue;
    BlockPlan plan = std::move(planner).Plan(length);
    if (plan.passing_bytes > block_bytes || !AreEnoughBlocks(blocks, plan.passing_bytes, block_bytes, limits)) continue;
    best = std::move(plan);
  }
  return best;
}

}  // namespace

std::optional<BlockPlan> PlanChain(absl::Span<const SegmentInstruction> segments, const ChainLimits& limits) {
  if (limits.block_bytes <= 0 || segments.size() < 2) return std::nullopt;
  const SegmentInstruction& first = segments[0];
  const auto& next = segments[1].operands;
  const ConcreteType* passed = nullptr;
  for (size_t r = 0; r < first.results.size(); ++r) {
    const ConcreteType& type = first.bound.results[r];
    const bool is_next = std::find(next.begin(), next.end(), first.results[r]) != next.end();
    if (is_next && (passed == nullptr || type.num_bytes() > passed->num_bytes())) passed = &type;
  }
  if (passed == nullptr) return std::nullopt;

  std::optional<BlockPlan> plan = LongestChain(segments, *passed, limits.block_bytes, limits);
  if (!plan.has_value() && limits.large_block_bytes > limits.block_bytes) {
    plan = LongestChain(segments, *passed, limits.large_block_bytes, limits);
  }
  return plan;
}

}  // namespace tensord::cpu
