#include "engine/exec/memory/placed_blocks.h"

#include <algorithm>
#include <bit>

namespace tensord {

PlacedBlocks::PlacedBlocks(int32_t num_times)
    : leaves_(std::bit_ceil(static_cast<size_t>(std::max(num_times, 1)))),
      tree_(2 * leaves_),
      born_(static_cast<size_t>(num_times)) {}

void PlacedBlocks::Add(const Range& range) {
  const int32_t index = static_cast<int32_t>(all_.size());
  all_.push_back(range);
  born_[static_cast<size_t>(range.birth)].push_back(index);
  size_t first = static_cast<size_t>(range.birth) + leaves_, past = static_cast<size_t>(range.death) + leaves_ + 1;
  for (; first < past; first /= 2, past /= 2) {
    if (first % 2 == 1) tree_[first++].push_back(index);
    if (past % 2 == 1) tree_[--past].push_back(index);
  }
}

const PlacedBlocks::Ranges& PlacedBlocks::AliveIn(int32_t birth, int32_t death, int64_t* steps) {
  found_.clear();
  const auto take = [&](const std::vector<int32_t>& indices) {
    for (int32_t index : indices) found_.push_back(all_[static_cast<size_t>(index)]);
  };
  for (size_t node = static_cast<size_t>(birth) + leaves_; node > 0; node /= 2) take(tree_[node]);
  for (int32_t time = birth + 1; time <= death; ++time) take(born_[static_cast<size_t>(time)]);
  *steps -= static_cast<int64_t>(found_.size()) + (death - birth) / 8;
  std::sort(found_.begin(), found_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return found_;
}

int64_t PlacedBlocks::LowestGap(const Ranges& ranges, int32_t birth, int32_t death, int64_t bytes) {
  int64_t offset = 0;
  for (const Range& range : ranges) {
    if (range.death < birth || death < range.birth) continue;
    if (range.begin - offset >= bytes) break;
    offset = std::max(offset, range.end);
  }
  return offset;
}

void PlacedBlocks::Insert(const Range& range, Ranges* ranges) {
  ranges->insert(std::upper_bound(ranges->begin(), ranges->end(), range,
                                  [](const Range& a, const Range& b) { return a.begin < b.begin; }),
                 range);
}

}  // namespace tensord
