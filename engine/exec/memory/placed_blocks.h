#ifndef TENSORD_ENGINE_EXEC_MEMORY_PLACED_BLOCKS_H_
#define TENSORD_ENGINE_EXEC_MEMORY_PLACED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensord {

// Ranges of memory that are taken for a while, found by time. Thread-compatible.
class PlacedBlocks {
 public:
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
    int32_t birth = 0;
    int32_t death = 0;  // included
  };
  using Ranges = std::vector<Range>;

  // Makes room for times 0 … num_times - 1.
  explicit PlacedBlocks(int32_t num_times);

  void Add(const Range& range);
  // Returns the blocks that live at some time in [birth, death], by their begin; valid until the next call. Subtracts
  // its steps from `steps`.
  const Ranges& AliveIn(int32_t birth, int32_t death, int64_t* steps);

  // Returns the lowest place for `bytes` beside the blocks that live at some time in [birth, death]. The ranges are
  // ordered by their begin.
  static int64_t LowestGap(const Ranges& ranges, int32_t birth, int32_t death, int64_t bytes);
  // Keeps the order by begin.
  static void Insert(const Range& range, Ranges* ranges);

 private:
  const size_t leaves_;
  // A tree over the times: each range hangs at the largest subtrees that make up its time, so that the path from a leaf
  // to the root meets it once if it is there at that time.
  std::vector<std::vector<int32_t>> tree_;
  std::vector<std::vector<int32_t>> born_;  // by time
  Ranges all_;
  Ranges found_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_PLACED_BLOCKS_H_
