#include "engine/exec/memory/memory_holes.h"

#include <algorithm>

#include "engine/base/checked_math.h"

namespace tensord {

std::optional<int64_t> MemoryHoles::Take(int64_t bytes) { return TakeHole(bytes, ends_ == Ends::kBoth); }

std::optional<int64_t> MemoryHoles::TakeLow(int64_t bytes) { return TakeHole(bytes, false); }

std::optional<int64_t> MemoryHoles::TakeHole(int64_t bytes, bool high) {
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [size, hole] = *fit;
  Remove(hole, size);
  const bool is_last = hole > 0 && hole + size == end_;
  const int64_t offset = high && is_last ? hole + size - bytes : hole;
  if (size > bytes) Insert(offset == hole ? hole + bytes : hole, size - bytes);
  used_ = std::max(used_, offset + bytes);
  return offset;
}

std::optional<int64_t> MemoryHoles::TakeBelow(int64_t bytes, int64_t end) {
  if (const std::optional<int64_t> offset = Take(bytes); offset.has_value()) return offset;
  if (GrowFrom() > end - bytes) return std::nullopt;
  return TakeOrGrow(bytes);
}

std::optional<int64_t> MemoryHoles::TakeOrGrow(int64_t bytes) {
  if (const std::optional<int64_t> offset = Take(bytes); offset.has_value()) return offset;
  const int64_t offset = GrowFrom();
  const std::optional<int64_t> end = CheckedAdd(offset, bytes);
  if (!end.has_value()) return std::nullopt;
  if (offset < end_) Remove(offset, end_ - offset);
  end_ = *end;
  used_ = std::max(used_, end_);
  return offset;
}

int64_t MemoryHoles::GrowFrom() const {
  if (by_offset_.empty()) return end_;
  const auto [last, size] = *by_offset_.rbegin();
  return last + size == end_ ? last : end_;
}

void MemoryHoles::Free(int64_t offset, int64_t bytes) {
  end_ = std::max(end_, offset + bytes);
  const auto next = by_offset_.find(offset + bytes);
  if (next != by_offset_.end()) {
    const int64_t size = next->second;
    Remove(offset + bytes, size);
    bytes += size;
  }
  auto previous = by_offset_.lower_bound(offset);
  if (previous != by_offset_.begin()) {
    --previous;
    const auto [start, size] = *previous;
    if (start + size == offset) {
      Remove(start, size);
      offset = start;
      bytes += size;
    }
  }
  Insert(offset, bytes);
}

void MemoryHoles::Insert(int64_t offset, int64_t bytes) {
  by_offset_[offset] = bytes;
  by_size_.insert({bytes, offset});
}

void MemoryHoles::Remove(int64_t offset, int64_t bytes) {
  by_offset_.erase(offset);
  by_size_.erase({bytes, offset});
}

}  // namespace tensord
