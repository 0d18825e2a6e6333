#ifndef TENSORD_BACKENDS_CPU_LAYOUT_STRIDED_COPY_H_
#define TENSORD_BACKENDS_CPU_LAYOUT_STRIDED_COPY_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "backends/cpu/layout/strided_copy_loops.h"
#include "engine/exec/backend/copy_axes.h"

namespace tensord::cpu {

class ThreadPool;

// A planned copy of an N-dimensional array between two layouts: transposes, broadcasts, slices, reversals, and parts of
// a larger destination. Knows shapes only; Run gets the addresses of the elements at index 0 of every axis.
//
// Planning merges axes, orders them by destination stride and picks long runs, short rows, fills or blocked transposes.
// The work is cut into num_tasks() tasks that touch disjoint parts of the destination.
//
// Immutable after construction, so thread-safe. Source and destination must not overlap. Run does not allocate and
// cannot fail. At most kMaxAxes axes.
class StridedCopy {
 public:
  static constexpr int kMaxAxes = 64;  // of a tensor

  // Copies nothing.
  StridedCopy() = default;
  // Plans a copy. element_bytes is 1, 2, 4, 8 or 16. whole_bytes is the size of the tensor that the destination is a
  // part of, if larger: large tensors are written past the cache.
  StridedCopy(absl::Span<const CopyAxis> axes, int64_t element_bytes, int64_t whole_bytes = 0);

  int64_t num_tasks() const { return num_tasks_; }
  void RunTask(int64_t task, const void* src, void* dst) const;
  // Runs all tasks, one after the other.
  void Run(const void* src, void* dst) const;

  // Bytes that are written.
  int64_t dst_bytes() const { return dst_bytes_; }

 private:
  // An axis of the block that one call of an inner routine does. A long axis is cut: all blocks have `length` elements
  // but the last one, which has `last_length`.
  struct BlockAxis {
    int64_t length = 1;
    int64_t last_length = 1;
    int loop = -1;  // which of loops_ steps over the cuts, -1: none
  };
  struct Loop {
    int64_t count = 0;
    int64_t src_step = 0;  // bytes
    int64_t dst_step = 0;
  };

  void PlanRows(const CopyAxes& axes, bool stream);
  bool PlanTiles(const CopyAxes& axes, bool stream);
  void AddLoops(const CopyAxes& axes);
  void RunBlocks(int64_t begin, int64_t end, const char* src, char* dst) const;
  void RunOneBlock(int64_t inner, int64_t outer, const char* src, char* dst) const;

  // Constant after construction.
  int64_t element_bytes_ = 1;
  int64_t dst_bytes_ = 0;
  int64_t num_blocks_ = 0;
  int64_t num_tasks_ = 0;
  BlockAxis inner_;  // along a row of the destination
  BlockAxis outer_;
  absl::InlinedVector<Loop, 6> loops_;  // the fastest first

  CopyRowsFunction copy_rows_ = nullptr;  // either rows…
  RowBlock rows_;

  CompositeTileFunction transpose_ = nullptr;  // …or tiles, streaming where the destination is aligned to a line
  CompositeTileFunction transpose_stream_ = nullptr;
  // Offsets in elements of the places along a side of a tile; empty if they step by one.
  struct TileSide {
    std::vector<int64_t> src;
    std::vector<int64_t> dst;
  };
  TileSide tile_rows_;
  TileSide tile_columns_;
};

// Runs a planned copy, spread over the pool if that is worthwhile.
void RunCopy(const StridedCopy& copy, const void* from, void* into, ThreadPool* pool);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LAYOUT_STRIDED_COPY_H_
