#include "backends/cpu/fused/space.h"

#include <algorithm>

#include "engine/base/rounding.h"

namespace tensord::cpu {
namespace {

// Points of a group below which the overhead of a group is more than that of reading across the memory order.
constexpr int64_t kMinGroupPoints = 64;
constexpr int64_t kShortRow = 256;
constexpr int64_t kMinRows = 16;  // that are worth to be taken together
// The most bytes of a group that is read more than once, so that it is still in the second-level cache.
constexpr int64_t kGroupBytes = int64_t{512} << 10;
constexpr int64_t kMinWidth = 128;
constexpr int64_t kMinRowTile = 64;

// `count` in parts of at most `limit`, as even as multiples of 16 allow.
int64_t EvenPart(int64_t count, int64_t limit) {
  if (count <= limit) return std::max<int64_t>(count, 1);
  return std::min(limit, CeilDiv(CeilDiv(count, CeilDiv(count, limit)), 16) * 16);
}

}  // namespace

FusedSpace::FusedSpace(const MicroProgram& program) {
  const auto reduces = [](const MicroInstruction& instruction) { return instruction.kind == MicroKind::kReduce; };
  const bool folds = std::any_of(program.instructions.begin(), program.instructions.end(), reduces);
  is_map_ = !program.has_reduced_axes() && !folds;
  int64_t leading = 1;  // kept points along the leading kept axes
  bool leads = true;
  int64_t kept_points = 1;
  for (size_t d = 0; d < program.axes.size(); ++d) {
    const Axis axis = {d, program.axes[d].size, 1};
    if (is_map_ || program.axes[d].is_reduced) {
      scan_.push_back(axis);
      scan_points_ *= axis.size;
      leads = false;
    } else {
      (leads ? front_ : rest_).push_back(axis);
      if (leads) leading *= axis.size;
      kept_points *= axis.size;
    }
  }
  // Short rows are folded side by side; rows that are only gone through one after the other stay.
  is_crossed_ = folds && leading == 1 && scan_points_ < kShortRow && kept_points >= kMinRows;
  if ((folds && leading * scan_points_ < kMinGroupPoints) || is_crossed_) {
    front_.insert(front_.end(), rest_.begin(), rest_.end());
    rest_.clear();
    leading = kept_points;
  }
  if (leading == 1) front_.clear();
}

void FusedSpace::Cut(int64_t tile_elements, int64_t reads, int64_t point_bytes) {
  box_.clear();
  outer_.clear();
  tail_size_ = width_ = tail_width_ = cuts_ = 1;
  int64_t limit = tile_elements;
  if (reads > 1 && scan_points_ > 0) {
    limit =
        std::clamp(kGroupBytes / std::max<int64_t>(1, point_bytes) / scan_points_, std::min(kMinWidth, limit), limit);
  }
  if (is_crossed_) limit = std::min(limit, std::max(kMinRows, tile_elements / std::max<int64_t>(1, scan_points_)));
  for (size_t j = 0; j < front_.size(); ++j) {
    const Axis& axis = front_[j];
    if (width_ * axis.size <= limit) {
      box_.push_back(axis);
      tail_size_ = axis.size;
      width_ *= axis.size;
      tail_width_ = width_;
      continue;
    }
    const int64_t part = width_ == 1 ? EvenPart(axis.size, limit)
                                     : CeilDiv(axis.size, CeilDiv(axis.size, std::max<int64_t>(1, limit / width_)));
    cuts_ = CeilDiv(axis.size, part);
    tail_size_ = axis.size - (cuts_ - 1) * part;
    box_.push_back({axis.axis, part, 1});
    outer_.push_back({axis.axis, cuts_, part});
    outer_.insert(outer_.end(), front_.begin() + static_cast<std::ptrdiff_t>(j) + 1, front_.end());
    tail_width_ = width_ * tail_size_;
    width_ *= part;
    break;
  }
  outer_.insert(outer_.end(), rest_.begin(), rest_.end());
  num_groups_ = 1;
  for (const Axis& axis : outer_) num_groups_ *= axis.size;
  if (width_ == 0) num_groups_ = 0;
  const int64_t rows = std::max<int64_t>(1, tile_elements / std::max<int64_t>(1, width_));
  tile_rows_ = is_map_ ? MapTile(rows) : EvenPart(scan_points_, rows);
}

// If accesses differ in more than one axis, a tile within a row of the first is a run of each of them and need not be
// copied together.
int64_t FusedSpace::MapTile(int64_t limit) const {
  if (scan_.size() < 2) return limit;
  const int64_t row = scan_[0].size;
  int64_t parts = std::max<int64_t>(1, CeilDiv(row, limit));
  const int64_t shortest = std::max(kMinRowTile, limit / 8);
  for (; row / parts >= shortest; ++parts) {
    if (row % parts == 0) return row / parts;
  }
  return limit;
}

Walk FusedSpace::WalkOf(absl::Span<const int64_t> strides, bool tail, bool with_scan) const {
  absl::InlinedVector<Walk::Axis, 8> axes;
  for (const Axis& axis : box_) axes.push_back({axis.size, strides[axis.axis]});
  if (tail && !axes.empty()) axes.back().size = tail_size_;
  if (with_scan) {
    for (const Axis& axis : scan_) axes.push_back({axis.size, strides[axis.axis]});
  }
  return Walk(axes);
}

int64_t FusedSpace::GroupOffsetByAxis(absl::Span<const int64_t> strides, int64_t group) const {
  int64_t offset = 0;
  if (group == 0) return offset;  // there may be no group at all
  for (size_t d = 0; d < outer_.size(); ++d) {
    const bool last = d + 1 == outer_.size();
    const int64_t index = last ? group : group % outer_[d].size;
    if (!last) group /= outer_[d].size;
    offset += index * outer_[d].step * strides[outer_[d].axis];
  }
  return offset;
}

size_t FusedSpace::TileCarry(int64_t tile) const {
  int64_t next = tile + 1;
  const int64_t parts = scan_[0].size / tile_rows_;
  if (parts > 1) {
    if (next % parts != 0) return 0;
    next /= parts;
  }
  size_t carry = 1;
  for (; carry + 1 < scan_.size() && next % scan_[carry].size == 0; ++carry) next /= scan_[carry].size;
  return carry;
}

std::vector<int64_t> FusedSpace::TileSteps(absl::Span<const int64_t> strides) const {
  std::vector<int64_t> steps = {tile_rows_ * strides[scan_[0].axis]};
  int64_t back = (scan_[0].size - tile_rows_) * strides[scan_[0].axis];
  for (size_t carry = 1; carry < scan_.size(); ++carry) {
    const int64_t stride = strides[scan_[carry].axis];
    steps.push_back(stride - back);
    back += (scan_[carry].size - 1) * stride;
  }
  return steps;
}

bool FusedSpace::DependsOnGroup(absl::Span<const int64_t> strides) const {
  return std::any_of(outer_.begin(), outer_.end(), [&](const Axis& axis) { return strides[axis.axis] != 0; });
}

}  // namespace tensord::cpu
