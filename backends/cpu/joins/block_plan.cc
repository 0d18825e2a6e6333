#include "backends/cpu/joins/block_plan.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/rounding.h"

namespace tensord::cpu {
namespace {

// Fewer blocks than threads want pay only if one is smaller than this part of its bound.
constexpr int64_t kSmallBlockPart = 4;

}  // namespace

void BlockTraffic::Pass(const ConcreteType& type) {
  passed_bytes += type.num_bytes();
  passed_elements += type.num_elements();
}

void BlockTraffic::Add(const BlockTraffic& other) {
  passed_bytes += other.passed_bytes;
  passed_elements += other.passed_elements;
  read_again += other.read_again;
}

bool BlockTraffic::Pays(double multiplications, double most_an_element) const {
  return read_again <= passed_bytes && multiplications <= most_an_element * static_cast<double>(passed_elements);
}

bool AreEnoughBlocks(int64_t num_blocks, int64_t passing_bytes, int64_t block_bytes, const ChainLimits& limits) {
  return num_blocks >= limits.least_blocks || passing_bytes <= block_bytes / kSmallBlockPart;
}

BlockTraffic BlockPlanner::TrafficOf(const SegmentBlocks& cut) const {
  BlockTraffic traffic;
  for (size_t k = 0; k < next().operands.size(); ++k) {
    const ConcreteType& type = next().bound.operands[k];
    if (Makes(next().operands[k])) {
      traffic.Pass(type);
    } else {
      traffic.read_again += std::max<int64_t>(0, cut.BlockBytes(k) * num_blocks_ - type.num_bytes());
    }
  }
  return traffic;
}

void BlockPlanner::Add(SegmentBlocks cut) {
  const SegmentInstruction& segment = next();
  const size_t s = cuts_.size();
  absl::InlinedVector<Value*, 4> read;
  for (const Slot slot : segment.operands) {
    const auto value = values_.find(slot);
    if (value == values_.end() || std::find(read.begin(), read.end(), &value->second) != read.end()) continue;
    read.push_back(&value->second);
    --value->second.readers_left;
    value->second.last_reader = s;
  }
  for (size_t r = 0; r < segment.results.size(); ++r) {
    values_[segment.results[r]] = {.bytes = segment.bound.results[r].num_bytes(),
                                   .writer = s,
                                   .last_reader = s,
                                   .readers_left = segment.num_readers[r]};
  }
  cuts_.push_back(std::move(cut));
}

bool BlockPlanner::IsClosed() const {
  return std::all_of(values_.begin(), values_.end(), [&](const auto& value) {
    return value.second.readers_left == 0 || value.second.writer + 1 == cuts_.size();
  });
}

BlockPlan BlockPlanner::Plan(size_t length) && {
  BlockPlan plan{.num_blocks = num_blocks_};
  for (size_t s = 0; s < length; ++s) {
    const SegmentInstruction& segment = segments_[s];
    BlockPlan::Segment planned{.blocks = std::move(cuts_[s])};
    for (const Slot slot : segment.operands) {
      const auto value = values_.find(slot);
      planned.operands.push_back(value == values_.end() || value->second.writer >= s
                                     ? BlockPlan::Place{.slot = slot}
                                     : BlockPlan::Place{.passes = true, .offset = value->second.offset});
    }
    for (size_t r = 0; r < segment.results.size(); ++r) {
      const Slot slot = segment.results[r];
      if (s + 1 == length) {
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

// Returns a place in an operand that may be overwritten, in a piece that is free again, or behind all others.
int64_t BlockPlanner::PlaceOf(size_t s, size_t result, const SegmentBlocks& cut, const Value& value) {
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

bool BlockPlanner::IsOverwritten(size_t s, size_t result, const SegmentBlocks& cut, const Value& value,
                                 const Piece& piece) const {
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

}  // namespace tensord::cpu
