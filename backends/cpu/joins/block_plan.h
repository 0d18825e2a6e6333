#ifndef TENSORD_BACKENDS_CPU_JOINS_BLOCK_PLAN_H_
#define TENSORD_BACKENDS_CPU_JOINS_BLOCK_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/segment_blocks.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// Segments that follow each other and run together, block by block: all segments of a block one after the other, so
// that values between them stay in the cache. Each reads only the parts of its own block of the others' results, and
// nobody else reads any but the last one's. The number of blocks follows from sizes alone.
struct BlockPlan {
  // The place of a tensor: in the block's own memory, or in a slot, at its place in the whole.
  struct Place {
    bool passes = false;
    int64_t offset = 0;
    Slot slot = 0;
  };
  struct Segment {
    SegmentBlocks blocks;
    std::vector<Place> operands;
    std::vector<Place> results;
  };

  int64_t num_blocks = 1;
  std::vector<Segment> segments;
  std::vector<Slot> passing;  // slots that need no memory
  int64_t passing_bytes = 0;  // of one block
};

// The gain and the price of blocks: values that stay in the cache, and bytes that more than one block reads.
struct BlockTraffic {
  int64_t passed_bytes = 0;
  int64_t passed_elements = 0;
  int64_t read_again = 0;  // bytes, beyond the first time

  void Pass(const ConcreteType& type);
  void Add(const BlockTraffic& other);
  // Tells whether no more is read again than passes, and a segment has at most so many multiplications for each element
  // that passes: with more it does not wait for memory.
  bool Pays(double multiplications, double most_an_element) const;
};

// Tells whether the threads can share the blocks: there are many, or small ones.
bool AreEnoughBlocks(int64_t num_blocks, int64_t passing_bytes, int64_t block_bytes, const ChainLimits& limits);

// Plans segments block by block, for every way that cuts them: counts what a cut costs, follows who reads the values
// between segments, and places these in the memory of a block. Which cuts to try is the way's own search.
//
// Borrows the segments.
class BlockPlanner {
 public:
  BlockPlanner(absl::Span<const SegmentInstruction> segments, int64_t num_blocks)
      : segments_(segments), num_blocks_(num_blocks) {}

  size_t num_added() const { return cuts_.size(); }
  const SegmentInstruction& next() const { return segments_[cuts_.size()]; }
  // Tells whether a segment that was added makes the value.
  bool Makes(Slot slot) const { return values_.contains(slot); }
  // Returns the traffic of the next segment in these blocks: its operands from segments that were added pass.
  BlockTraffic TrafficOf(const SegmentBlocks& cut) const;
  // Adds the next segment.
  void Add(SegmentBlocks cut);
  // Tells whether nobody but the segments that were added reads any result but the last one's.
  bool IsClosed() const;
  // Returns the plan of the first segments that were added.
  BlockPlan Plan(size_t length) &&;

 private:
  // A result of a segment.
  struct Value {
    int64_t bytes = 0;
    size_t writer = 0;
    size_t last_reader = 0;
    int32_t readers_left = 0;
    int64_t offset = 0;
  };
  // A piece of the block's memory.
  struct Piece {
    int64_t offset = 0;
    int64_t bytes = 0;
    size_t free_after = 0;  // a segment
  };

  int64_t PlaceOf(size_t s, size_t result, const SegmentBlocks& cut, const Value& value);
  bool IsOverwritten(size_t s, size_t result, const SegmentBlocks& cut, const Value& value, const Piece& piece) const;

  const absl::Span<const SegmentInstruction> segments_;
  const int64_t num_blocks_;
  std::vector<SegmentBlocks> cuts_;
  absl::flat_hash_map<Slot, Value> values_;
  std::vector<Piece> pieces_;
  int64_t passing_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_BLOCK_PLAN_H_
