#ifndef TENSORD_BACKENDS_CPU_FUSED_SPACE_H_
#define TENSORD_BACKENDS_CPU_FUSED_SPACE_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "backends/cpu/fused/walk.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// The order in which a fused kernel goes through its space, from sizes alone.
//
// A *group* is a box of kept points together with all reduced points of each: the points of one reduction. They are
// counted with the box's axes fastest, then the reduced ones (the *scan*); a *tile* is a range of them, made of whole
// rows of the box. If the fastest axis is reduced, the box is one point and a tile a piece of a row. Without reductions
// there is one group, with the whole space as its scan. Short rows are taken many at a time, as a box that lies across
// the memory order.
//
// A value type; constant after Cut.
class FusedSpace {
 public:
  explicit FusedSpace(const MicroProgram& program);

  // Fixes box and tiles, of at most `tile_elements` points. `reads` counts how often a group is gone through,
  // `point_bytes` the bytes read at a point each time.
  void Cut(int64_t tile_elements, int64_t reads, int64_t point_bytes);

  // Without reductions: no value has another level than kFull or kUniform.
  bool is_map() const { return is_map_; }
  // Tells whether a group has one kept point, so that its kept values are single elements. Known before Cut.
  bool has_single_rows() const { return front_.empty(); }

  // Returns the width of the box; the last box along the cut axis may be smaller (`tail`).
  int64_t width(bool tail) const { return tail ? tail_width_ : width_; }
  bool is_tail(int64_t group) const { return tail_width_ != width_ && group % cuts_ == cuts_ - 1; }
  int64_t scan_points() const { return scan_points_; }
  int64_t tile_rows() const { return tile_rows_; }  // scan points of a tile
  int64_t num_tiles() const { return (scan_points_ + tile_rows_ - 1) / tile_rows_; }
  int64_t num_groups() const { return num_groups_; }

  // Return the places of a group's points, or of its box's, in an access with one stride an axis of the program.
  Walk GroupWalk(absl::Span<const int64_t> strides, bool tail) const { return WalkOf(strides, tail, true); }
  Walk BoxWalk(absl::Span<const int64_t> strides, bool tail) const { return WalkOf(strides, tail, false); }
  // Returns the element from which on a group's points are counted, by those strides.
  int64_t GroupOffset(absl::Span<const int64_t> strides, int64_t group) const {
    if (outer_.size() == 1) return group * outer_[0].step * strides[outer_[0].axis];
    return GroupOffsetByAxis(strides, group);
  }
  // Returns the distance to the next group's, for as many groups as follow one another in this way from this one on.
  int64_t GroupStride(absl::Span<const int64_t> strides) const {
    return outer_.empty() ? 0 : outer_[0].step * strides[outer_[0].axis];
  }
  int64_t GroupsInLine(int64_t group) const { return outer_.empty() ? 1 : outer_[0].size - group % outer_[0].size; }
  // Returns true for maps in which each tile is a part of a row along the first axis, all of one length. From one tile
  // to the next a few axes end, in this order. TileCarry counts them; the step by an access's strides follows from the
  // count.
  bool has_tiles_in_rows() const {
    return is_map_ && scan_.size() > 1 && scan_[0].size > 1 && scan_[0].size % tile_rows_ == 0;
  }
  bool IsAlongRows(absl::Span<const int64_t> strides) const { return strides[scan_[0].axis] == 1; }
  size_t TileCarry(int64_t tile) const;
  std::vector<int64_t> TileSteps(absl::Span<const int64_t> strides) const;  // by carry
  bool DependsOnGroup(absl::Span<const int64_t> strides) const;

 private:
  struct Axis {
    size_t axis = 0;  // of the program
    int64_t size = 1;
    int64_t step = 1;
  };

  Walk WalkOf(absl::Span<const int64_t> strides, bool tail, bool with_scan) const;
  int64_t GroupOffsetByAxis(absl::Span<const int64_t> strides, int64_t group) const;
  int64_t MapTile(int64_t limit) const;

  bool is_map_ = false;
  bool is_crossed_ = false;  // boxes lie across the memory order
  std::vector<Axis> front_;  // kept axes that boxes are cut from
  std::vector<Axis> scan_;
  std::vector<Axis> rest_;  // of the kept axes
  int64_t scan_points_ = 1;

  std::vector<Axis> box_;    // with the last axis as long as it is in all boxes but the tail
  std::vector<Axis> outer_;  // over groups; the first one counts the cuts
  int64_t tail_size_ = 1;    // of the last axis of the box
  int64_t width_ = 1;
  int64_t tail_width_ = 1;
  int64_t cuts_ = 1;
  int64_t tile_rows_ = 1;
  int64_t num_groups_ = 1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_SPACE_H_
