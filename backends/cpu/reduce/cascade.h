#ifndef TENSORD_BACKENDS_CPU_REDUCE_CASCADE_H_
#define TENSORD_BACKENDS_CPU_REDUCE_CASCADE_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "backends/cpu/reduce/loops.h"

namespace tensord::cpu {

// Accumulators of a reduction in levels. Level 0 takes rows; after kRadix additions it goes into level 1 as one row,
// and so on, so that no accumulator takes many terms one after the other. The tree depends on the calls alone.
//
// Borrows the loops and the storage, which is `levels` * `level_bytes` and need not be set before.
class Cascade {
 public:
  static constexpr int kMaxLevels = 8;   // 16^8 rows: more than memory holds
  static constexpr int64_t kRadix = 16;  // additions to one level before it goes into the next

  // `accumulators` of `accumulator_bytes` in all, at most level_bytes. With one level the additions follow one another.
  Cascade(const ReduceLoops& loops, int64_t accumulators, int64_t accumulator_bytes, int levels, int64_t level_bytes,
          char* storage)
      : loops_(loops),
        accumulators_(accumulators),
        bytes_(accumulator_bytes),
        levels_(levels),
        level_bytes_(level_bytes),
        storage_(storage) {
    loops_.clear(Level(0), accumulators_);
  }

  // Adds `rows` rows of `count` elements, `step` apart, to the first `count` accumulators.
  void Add(const void* x, int64_t step, int64_t rows, int64_t count) {
    loops_.accumulate(x, step, rows, count, Level(0));
    taken_[0] += rows / 8 + std::popcount(static_cast<uint64_t>(rows % 8));  // what accumulate adds as one
    if (taken_[0] >= kRadix) Carry(0);
  }

  // The accumulators, all terms included.
  char* Finish() {
    for (int level = 1; level < num_levels_; ++level) {
      if (taken_[level] > 0) loops_.accumulate(Level(level), 0, 1, accumulators_, Level(0));
    }
    return Level(0);
  }

 private:
  char* Level(int level) { return storage_ + level * level_bytes_; }

  void Carry(int level) {
    if (level + 1 == levels_) return;
    if (taken_[level + 1] == 0) {
      std::memcpy(Level(level + 1), Level(level), static_cast<size_t>(bytes_));
    } else {
      loops_.accumulate(Level(level), 0, 1, accumulators_, Level(level + 1));
    }
    num_levels_ = std::max(num_levels_, level + 2);
    loops_.clear(Level(level), accumulators_);
    taken_[level] = 0;
    if (++taken_[level + 1] == kRadix) Carry(level + 1);
  }

  const ReduceLoops& loops_;
  const int64_t accumulators_;
  const int64_t bytes_;
  const int levels_;
  const int64_t level_bytes_;
  char* const storage_;
  int num_levels_ = 1;
  int64_t taken_[kMaxLevels] = {};
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_REDUCE_CASCADE_H_
