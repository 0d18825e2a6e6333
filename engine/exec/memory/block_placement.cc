#include "engine/exec/memory/block_placement.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "engine/base/at.h"
#include "engine/base/checked_math.h"
#include "engine/base/stop_signal.h"
#include "engine/exec/memory/memory_holes.h"
#include "engine/exec/memory/placed_blocks.h"

namespace tensord {
namespace {

// The number of large enough regions to try, the smallest first.
constexpr int kTriedRegions = 8;
// How many blocks may be placed again and again, and how often at least all are.
constexpr size_t kPlacedInAll = 20000;
constexpr size_t kLeastTries = 2;
// The most steps a block of a slower way.
constexpr int64_t kStepsPerBlock = 48;
constexpr int64_t kStepsAnyway = 1 << 14;
// A result this close to the bytes alive at once is not worth another try.
constexpr double kCloseEnough = 1.02;
constexpr double kLittle = 4096;
constexpr double kLargestExact = int64_t{1} << 53;

enum class Way {
  kForward,
  kBackward,
  kForwardFromBothEnds,
  kBackwardFromBothEnds,
  kLargestFirst,
  kLargestAndLongestFirst
};
constexpr Way kWays[] = {Way::kForward,
                         Way::kBackward,
                         Way::kForwardFromBothEnds,
                         Way::kBackwardFromBothEnds,
                         Way::kLargestFirst,
                         Way::kLargestAndLongestFirst};

struct Try {
  Way way = Way::kForward;
  bool regions_grow = false;
  bool arena_first = false;  // it is filled, up to what is needed, before the regions are
};

// One try.
class Placer {
 public:
  Placer(absl::Span<const FreeRegion> regions, int32_t num_instructions, absl::Span<const MemoryBlock> blocks,
         absl::Span<const int64_t> aligned, int64_t needed, const Try& how)
      : num_instructions_(num_instructions),
        how_(how),
        needed_(needed),
        blocks_(blocks.begin(), blocks.end()),
        aligned_(aligned) {
    placement_.places.resize(blocks.size());
    for (const FreeRegion& region : regions) {
      regions_.push_back(region);
      if (!how.regions_grow) regions_.back().most_bytes = region.bytes;
      placement_.region_bytes.push_back(region.bytes);
    }
  }

  // Returns nothing if the arena overflows, the try takes long or the work is stopped.
  std::optional<BlockPlacement> Place() {
    if (how_.way == Way::kBackward || how_.way == Way::kBackwardFromBothEnds) TurnTimeAround();
    const bool in_sequence = how_.way == Way::kLargestFirst || how_.way == Way::kLargestAndLongestFirst;
    const std::optional<int64_t> arena = in_sequence ? PlaceInSequence(Sequence()) : PlaceInOrder();
    if (!arena.has_value()) return std::nullopt;
    placement_.arena_bytes = *arena;
    return std::move(placement_);
  }

 private:
  void TurnTimeAround() {
    const int32_t last = num_instructions_ - 1;
    for (MemoryBlock& block : blocks_) {
      std::tie(block.birth, block.death) = std::make_pair(last - block.death, last - block.birth);
    }
    for (FreeRegion& region : regions_) {
      std::tie(region.first_free, region.last_free) = std::make_pair(last - region.last_free, last - region.first_free);
    }
  }

  void PutIntoRegion(size_t block, int32_t region, int64_t offset) {
    placement_.places[block] = {.region = region, .offset = offset};
    int64_t& bytes = placement_.region_bytes[At(region)];
    bytes = std::max(bytes, offset + blocks_[block].bytes);
  }

  // Places blocks as time runs, each in the smallest hole.
  std::optional<int64_t> PlaceInOrder() {
    std::vector<std::vector<int32_t>> born(At(num_instructions_)), dying(At(num_instructions_));
    for (size_t b = 0; b < blocks_.size(); ++b) {
      born[At(blocks_[b].birth)].push_back(static_cast<int32_t>(b));
      dying[At(blocks_[b].death)].push_back(static_cast<int32_t>(b));
    }
    std::vector<std::vector<int32_t>> opening(At(num_instructions_)), closing(At(num_instructions_));
    const bool both_ends = how_.way == Way::kForwardFromBothEnds || how_.way == Way::kBackwardFromBothEnds;
    const MemoryHoles::Ends ends = both_ends ? MemoryHoles::Ends::kBoth : MemoryHoles::Ends::kLow;
    std::vector<MemoryHoles> region_holes(regions_.size(), MemoryHoles(ends));
    for (size_t r = 0; r < regions_.size(); ++r) {
      opening[At(regions_[r].first_free)].push_back(static_cast<int32_t>(r));
      closing[At(regions_[r].last_free)].push_back(static_cast<int32_t>(r));
    }
    OpenRegions open;
    MemoryHoles arena(ends);
    if (both_ends) arena.Free(0, needed_);
    for (int32_t i = 0; i < num_instructions_; ++i) {
      if (StopRequested()) return std::nullopt;
      for (int32_t r : opening[At(i)]) {
        const int64_t bytes = regions_[At(r)].most_bytes;
        region_holes[At(r)].Free(0, AlignBytes(bytes).value_or(bytes));
        open.insert({bytes, r});
      }
      for (int32_t b : born[At(i)]) {
        std::optional<int64_t> offset;
        if (how_.arena_first) offset = arena.TakeBelow(aligned_[At(b)], needed_);
        if (!offset.has_value() && PlaceInOpenRegion(At(b), open, &region_holes)) continue;
        if (!offset.has_value()) offset = arena.TakeOrGrow(aligned_[At(b)]);
        if (!offset.has_value()) return std::nullopt;
        placement_.places[At(b)].offset = *offset;
      }
      for (int32_t b : dying[At(i)]) {
        const BlockPlace& place = placement_.places[At(b)];
        (place.region < 0 ? arena : region_holes[At(place.region)]).Free(place.offset, aligned_[At(b)]);
      }
      for (int32_t r : closing[At(i)]) open.erase({regions_[At(r)].most_bytes, r});
    }
    return arena.used();
  }

  using OpenRegions = std::set<std::pair<int64_t, int32_t>>;  // {bytes, region}

  bool PlaceInOpenRegion(size_t b, const OpenRegions& open, std::vector<MemoryHoles>* region_holes) {
    const MemoryBlock& block = blocks_[b];
    int tried = 0;
    for (auto it = open.lower_bound({block.bytes, 0}); it != open.end() && tried < kTriedRegions; ++it, ++tried) {
      const auto [bytes, r] = *it;
      if (regions_[At(r)].last_free < block.death) continue;
      MemoryHoles& holes = (*region_holes)[At(r)];
      std::optional<int64_t> offset = holes.Take(aligned_[b]);
      // The region lacks the bytes that rounding up added to it.
      if (offset.has_value() && *offset > bytes - block.bytes) {
        holes.Free(*offset, aligned_[b]);
        offset = holes.TakeLow(aligned_[b]);
      }
      if (!offset.has_value()) continue;
      if (*offset <= bytes - block.bytes) {
        PutIntoRegion(b, r, *offset);
        return true;
      }
      holes.Free(*offset, aligned_[b]);
    }
    return false;
  }

  std::vector<int32_t> Sequence() const {
    std::vector<int32_t> order(blocks_.size());
    std::vector<double> weight(blocks_.size());
    for (size_t b = 0; b < order.size(); ++b) {
      order[b] = static_cast<int32_t>(b);
      weight[b] = static_cast<double>(aligned_[b]);
      if (how_.way == Way::kLargestAndLongestFirst) weight[b] *= blocks_[b].death - blocks_[b].birth + 1;
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return weight[At(a)] > weight[At(b)]; });
    return order;
  }

  // Places blocks in this order, each as low as blocks alive at the same time let it. Nothing if that overflows or
  // takes long.
  std::optional<int64_t> PlaceInSequence(const std::vector<int32_t>& order) {
    PlacedBlocks in_arena(num_instructions_);
    std::vector<PlacedBlocks::Ranges> in_region(regions_.size());
    std::vector<int32_t> by_size(regions_.size());
    for (size_t r = 0; r < by_size.size(); ++r) by_size[r] = static_cast<int32_t>(r);
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](int32_t a, int32_t b) { return regions_[At(a)].most_bytes < regions_[At(b)].most_bytes; });

    int64_t steps = kStepsAnyway + kStepsPerBlock * static_cast<int64_t>(order.size());
    int64_t end = 0;
    for (int32_t b : order) {
      if (StopRequested()) return std::nullopt;
      if (!how_.arena_first && PlaceInSomeRegion(At(b), by_size, &in_region, &steps)) continue;
      const MemoryBlock& block = blocks_[At(b)];
      const PlacedBlocks::Ranges& alive = in_arena.AliveIn(block.birth, block.death, &steps);
      const int64_t offset = PlacedBlocks::LowestGap(alive, block.birth, block.death, aligned_[At(b)]);
      const std::optional<int64_t> block_end = CheckedAdd(offset, aligned_[At(b)]);
      if (!block_end.has_value() || steps < 0) return std::nullopt;
      if (how_.arena_first && *block_end > needed_ && PlaceInSomeRegion(At(b), by_size, &in_region, &steps)) {
        continue;
      }
      placement_.places[At(b)].offset = offset;
      end = std::max(end, *block_end);
      in_arena.Add({offset, *block_end, block.birth, block.death});
    }
    return end;
  }

  bool PlaceInSomeRegion(size_t b, const std::vector<int32_t>& by_size, std::vector<PlacedBlocks::Ranges>* in_region,
                         int64_t* steps) {
    const MemoryBlock& block = blocks_[b];
    auto it = std::lower_bound(by_size.begin(), by_size.end(), block.bytes,
                               [&](int32_t r, int64_t size) { return regions_[At(r)].most_bytes < size; });
    for (int tried = 0; it != by_size.end() && tried < kTriedRegions; ++it, ++tried) {
      const FreeRegion& region = regions_[At(*it)];
      if (block.birth < region.first_free || region.last_free < block.death) continue;
      PlacedBlocks::Ranges& placed = (*in_region)[At(*it)];
      *steps -= static_cast<int64_t>(placed.size());
      const int64_t offset = PlacedBlocks::LowestGap(placed, block.birth, block.death, aligned_[b]);
      if (offset > region.most_bytes - block.bytes) continue;
      PutIntoRegion(b, *it, offset);
      PlacedBlocks::Insert({offset, offset + aligned_[b], block.birth, block.death}, &placed);
      return true;
    }
    return false;
  }

  const int32_t num_instructions_;
  const Try how_;
  const int64_t needed_;  // in the arena, whatever the placement is; a multiple of kBufferAlignment
  std::vector<MemoryBlock> blocks_;
  std::vector<FreeRegion> regions_;
  const absl::Span<const int64_t> aligned_;  // by block
  BlockPlacement placement_;
};

// Returns the bytes that any placement needs beside the regions. In doubles: sums may overflow, and only the ratio
// matters.
double NeededBytes(absl::Span<const FreeRegion> regions, int32_t num_instructions, absl::Span<const MemoryBlock> blocks,
                   absl::Span<const int64_t> aligned) {
  std::vector<double> change(At(num_instructions) + 1);
  for (size_t b = 0; b < blocks.size(); ++b) {
    change[At(blocks[b].birth)] += static_cast<double>(aligned[b]);
    change[At(blocks[b].death) + 1] -= static_cast<double>(aligned[b]);
  }
  for (const FreeRegion& region : regions) {
    const double bytes = static_cast<double>(region.bytes);
    change[At(region.first_free)] -= bytes;
    change[At(region.last_free) + 1] += bytes;
  }
  double alive = 0, most = 0;
  for (double by : change) most = std::max(most, alive += by);
  return most;
}

// Returns the arena, and the growth of regions.
double CostOf(const BlockPlacement& placement, absl::Span<const FreeRegion> regions) {
  double cost = static_cast<double>(placement.arena_bytes);
  for (size_t r = 0; r < regions.size(); ++r) {
    cost += static_cast<double>(placement.region_bytes[r] - regions[r].bytes);
  }
  return cost;
}

}  // namespace

std::optional<int64_t> AlignBytes(int64_t bytes) {
  const std::optional<int64_t> last = CheckedAdd(bytes, kBufferAlignment - 1);
  if (!last.has_value()) return std::nullopt;
  return *last / kBufferAlignment * kBufferAlignment;
}

std::optional<BlockPlacement> PlaceBlocks(absl::Span<const FreeRegion> regions, int32_t num_instructions,
                                          absl::Span<const MemoryBlock> blocks) {
  std::vector<int64_t> aligned;
  aligned.reserve(blocks.size());
  for (const MemoryBlock& block : blocks) {
    const std::optional<int64_t> bytes = AlignBytes(std::max<int64_t>(block.bytes, 1));
    if (!bytes.has_value()) return std::nullopt;
    aligned.push_back(*bytes);
  }
  const double needed = NeededBytes(regions, num_instructions, blocks, aligned);
  // If no memory has that many bytes, any try will overflow.
  const int64_t needed_bytes = AlignBytes(static_cast<int64_t>(std::min(needed, kLargestExact))).value_or(0);
  std::vector<Try> tries;
  for (bool regions_grow : {false, true}) {
    for (bool arena_first : {false, true}) {
      if (regions.empty() && !tries.empty()) break;
      for (Way way : kWays) tries.push_back({.way = way, .regions_grow = regions_grow, .arena_first = arena_first});
    }
  }
  tries.resize(std::min(tries.size(), std::max(kLeastTries, kPlacedInAll / std::max<size_t>(blocks.size(), 1))));
  std::optional<BlockPlacement> best;
  for (const Try& how : tries) {
    if (StopRequested()) return std::nullopt;
    std::optional<BlockPlacement> placement =
        Placer(regions, num_instructions, blocks, aligned, needed_bytes, how).Place();
    if (!placement.has_value()) continue;
    if (!best.has_value() || CostOf(*placement, regions) < CostOf(*best, regions)) best = std::move(placement);
    if (CostOf(*best, regions) <= std::max(kCloseEnough * needed, needed + kLittle)) break;
  }
  return best;
}

}  // namespace tensord
