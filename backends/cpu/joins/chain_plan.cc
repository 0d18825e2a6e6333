#include "backends/cpu/joins/chain_plan.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "engine/base/rounding.h"

namespace tensord::cpu {
namespace {

// Fewer blocks than threads want pay only if one is smaller than this part of its bound.
constexpr int64_t kSmallChainBlockPart = 4;
// The least part of a block's bound: in smaller blocks the calls cost more than memory would.
constexpr int64_t kLeastBlockPart = 16;
// The multiplications of a contraction for each element that it takes from the cache instead of from memory: with more
// it does not wait for memory.
constexpr double kMostChainMultiplications = 512;
constexpr size_t kMostSegments = 64;  // bounds the time of planning

// The segments from the first on, cut into a number of blocks.
class Chain {
 public:
  Chain(absl::Span<const SegmentInstruction> segments, int64_t num_blocks, int64_t least_bytes)
      : segments_(segments), num_blocks_(num_blocks), least_bytes_(least_bytes) {}

  // Adds as many segments as can be had.
  void Grow() {
    while (cuts_.size() < std::min(segments_.size(), kMostSegments) && Add(segments_[cuts_.size()])) {
      if (IsClosed()) length_ = cuts_.size();
    }
  }

  bool pays() const {
    return length_ >= 2 && std::any_of(values_.begin(), values_.end(), [&](const auto& value) {
             return value.second.bytes >= least_bytes_ && value.second.writer + 1 < length_;
           });
  }
  size_t length() const { return length_; }

  BlockPlan Plan() && {
    BlockPlan plan{.num_blocks = num_blocks_};
    for (size_t s = 0; s < length_; ++s) {
      const SegmentInstruction& segment = segments_[s];
      BlockPlan::Segment planned{.blocks = std::move(cuts_[s])};
      for (Slot slot : segment.operands) {
        const auto value = values_.find(slot);
        planned.operands.push_back(value == values_.end() || value->second.writer >= s
                                       ? BlockPlan::Place{.slot = slot}
                                       : BlockPlan::Place{.passes = true, .offset = value->second.offset});
      }
      for (size_t r = 0; r < segment.results.size(); ++r) {
        const Slot slot = segment.results[r];
        if (s + 1 == length_) {
          planned.results.push_back({.slot = slot});
          continue;
        }
        Value& value = values_.find(slot)->second;
        value.offset = PlaceOf(s, r, planned.blocks, value);
        planned.results.push_back({.passes = true, .offset = value.offset});
        plan.passing.push_back(slot);
      }
      plan.segments.push_back(std::move(planned));
    }
    plan.passing_bytes = passing_bytes_;
    return plan;
  }

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

  bool Add(const SegmentInstruction& segment) {
    std::optional<SegmentBlocks> cut = SegmentBlocks::Cut(segment.bound, num_blocks_);
    if (!cut.has_value()) return false;
    int64_t passed_bytes = 0, passed_elements = 0, read_again = 0;
    absl::InlinedVector<Value*, 4> read;
    for (size_t k = 0; k < segment.operands.size(); ++k) {
      const ConcreteType& type = segment.bound.operands[k];
      const auto value = values_.find(segment.operands[k]);
      if (value == values_.end()) {
        read_again += std::max<int64_t>(0, cut->BlockBytes(k) * num_blocks_ - type.num_bytes());
        continue;
      }
      if (!cut->ReadsPiece(k)) return false;
      if (std::find(read.begin(), read.end(), &value->second) == read.end()) read.push_back(&value->second);
      passed_bytes += type.num_bytes();
      passed_elements += type.num_elements();
    }
    if (cuts_.empty()) {
      // A lone elementwise op writes over its operand, which saves as much memory.
      if (cut->is_elementwise()) return false;
      for (const ConcreteType& result : segment.bound.results) {
        passed_bytes += result.num_bytes();
        passed_elements += result.num_elements();
      }
    }
    const bool pays = read_again <= passed_bytes &&
                      cut->multiplications() <= kMostChainMultiplications * static_cast<double>(passed_elements);
    if (passed_bytes == 0 || !pays) return false;
    for (Value* value : read) {
      --value->readers_left;
      value->last_reader = cuts_.size();
    }
    for (size_t r = 0; r < segment.results.size(); ++r) {
      values_[segment.results[r]] = {.bytes = segment.bound.results[r].num_bytes(),
                                     .writer = cuts_.size(),
                                     .last_reader = cuts_.size(),
                                     .readers_left = segment.num_readers[r]};
    }
    cuts_.push_back(*std::move(cut));
    return true;
  }

  // Tells whether nobody but these segments reads any result but the last one's.
  bool IsClosed() const {
    return std::all_of(values_.begin(), values_.end(), [&](const auto& value) {
      return value.second.readers_left == 0 || value.second.writer + 1 == cuts_.size();
    });
  }

  // Returns a place in an operand that may be overwritten, in a piece that is free again, or behind all others.
  int64_t PlaceOf(size_t s, size_t result, const SegmentBlocks& cut, const Value& value) {
    const int64_t bytes = RoundUp(value.bytes / num_blocks_, 64);
    for (Piece& piece : pieces_) {
      const bool is_free = piece.free_after < s || IsOverwritten(s, result, cut, value, piece);
      if (!is_free || piece.bytes < bytes) continue;
      piece.free_after = value.last_reader;
      return piece.offset;
    }
    pieces_.push_back({passing_bytes_, bytes, value.last_reader});
    passing_bytes_ += bytes;
    return pieces_.back().offset;
  }

  bool IsOverwritten(size_t s, size_t result, const SegmentBlocks& cut, const Value& value, const Piece& piece) const {
    if (piece.free_after != s) return false;
    bool is_read = false;
    for (size_t k = 0; k < segments_[s].operands.size(); ++k) {
      const auto operand = values_.find(segments_[s].operands[k]);
      if (operand == values_.end() || operand->second.offset != piece.offset || operand->second.last_reader != s) {
        continue;
      }
      if (operand->second.bytes != value.bytes || !cut.MayOverwrite(result, k)) return false;
      is_read = true;
    }
    return is_read;
  }

  const absl::Span<const SegmentInstruction> segments_;
  const int64_t num_blocks_;
  const int64_t least_bytes_;
  std::vector<SegmentBlocks> cuts_;
  absl::flat_hash_map<Slot, Value> values_;
  size_t length_ = 0;
  std::vector<Piece> pieces_;
  int64_t passing_bytes_ = 0;
};

// Returns the longest chain, and of several the one with the largest blocks. The first segment passes a value of that
// type on.
std::optional<BlockPlan> LongestChain(absl::Span<const SegmentInstruction> segments, const ConcreteType& passed,
                                      int64_t block_bytes, const ChainLimits& limits) {
  std::optional<BlockPlan> best;
  const int64_t most_blocks = passed.num_bytes() / std::max<int64_t>(1, block_bytes / kLeastBlockPart);
  for (const int64_t blocks : BlockCounts(passed, most_blocks)) {
    Chain chain(segments, blocks, limits.least_bytes);
    chain.Grow();
    if (!chain.pays() || (best.has_value() && chain.length() <= best->segments.size())) continue;
    BlockPlan plan = std::move(chain).Plan();
    if (plan.passing_bytes > block_bytes) continue;
    if (blocks < limits.least_blocks && plan.passing_bytes > block_bytes / kSmallChainBlockPart) continue;
    best = std::move(plan);
  }
  return best;
}

}  // namespace

std::vector<int64_t> BlockCounts(const ConcreteType& type, int64_t most) {
  std::vector<int64_t> counts;
  int64_t slower = 1;
  for (size_t d = type.shape.size(); d-- > 0 && slower <= most;) {
    const int64_t size = type.shape[d];
    for (int64_t parts = 2; parts <= size && slower * parts <= most; ++parts) {
      if (size % parts == 0) counts.push_back(slower * parts);
    }
    slower *= size;
  }
  return counts;
}

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
