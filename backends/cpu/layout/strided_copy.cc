#include "backends/cpu/layout/strided_copy.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/rounding.h"

namespace tensord::cpu {
namespace {

// The bytes of one call's copy: long enough for the processor's prefetchers, and a part of a task.
constexpr int64_t kCopyBlockBytes = int64_t{64} << 10;
constexpr int64_t kCopyTaskBytes = int64_t{256} << 10;
constexpr int64_t kMaxCopyTasks = 1024;
constexpr int64_t kMinStreamRunBytes = 256;  // shorter rows fill lines of the cache in pieces

bool IsWholeLines(int64_t bytes) { return bytes % 64 == 0; }

// Takes a short run that stays in place as one wider element, so that the transposes move it whole.
void WidenElement(CopyAxes& axes, int64_t& element_bytes) {
  while (element_bytes < 16 && !axes.empty() && axes[0].src_stride == 1 && axes[0].dst_stride == 1 &&
         axes[0].size % 2 == 0 && axes[0].size * element_bytes <= 64) {
    for (size_t i = 1; i < axes.size(); ++i) {
      if (axes[i].src_stride % 2 != 0 || axes[i].dst_stride % 2 != 0) return;
    }
    element_bytes *= 2;
    axes[0].size /= 2;
    for (size_t i = 1; i < axes.size(); ++i) {
      axes[i].src_stride /= 2;
      axes[i].dst_stride /= 2;
    }
    if (axes[0].size == 1) axes.erase(axes.begin());
  }
}

int Log2Bytes(int64_t element_bytes) { return std::countr_zero(static_cast<uint64_t>(element_bytes)); }

}  // namespace

StridedCopy::StridedCopy(absl::Span<const CopyAxis> given_axes, int64_t element_bytes, int64_t whole_bytes)
    : element_bytes_(element_bytes) {
  int64_t elements = 1;
  for (const CopyAxis& axis : given_axes) elements *= axis.size;
  if (elements == 0) return;
  dst_bytes_ = elements * element_bytes;
  CopyAxes axes = MergedCopyAxes(given_axes);
  WidenElement(axes, element_bytes_);
  const bool stream = std::max(dst_bytes_, whole_bytes) >= StreamedResultBytes();
  if (!PlanTiles(axes, stream)) PlanRows(axes, stream);
  num_blocks_ = 1;
  for (const Loop& loop : loops_) num_blocks_ *= loop.count;
  num_tasks_ = std::clamp(CeilDiv(dst_bytes_, kCopyTaskBytes), int64_t{1}, std::min(num_blocks_, kMaxCopyTasks));
}

void StridedCopy::AddLoops(const CopyAxes& axes) {
  for (const CopyAxis& axis : axes) {
    loops_.push_back({axis.size, axis.src_stride * element_bytes_, axis.dst_stride * element_bytes_});
  }
}

void StridedCopy::PlanRows(const CopyAxes& axes, bool stream) {
  const CopyAxis row = axes.empty() ? CopyAxis{1, 1, 1} : axes[0];
  const CopyAxis column = axes.size() < 2 ? CopyAxis{1, 0, 0} : axes[1];
  const int64_t row_bytes = row.size * element_bytes_;

  const StridedCopyLoops& loops = GetStridedCopyLoops();
  const StridedCopyLoops::Width& width = loops.widths[Log2Bytes(element_bytes_)];
  const bool stream_rows = stream && row_bytes >= kMinStreamRunBytes;
  const bool is_run = row.dst_stride == 1 && row.src_stride == 1;
  if (is_run) {
    copy_rows_ = stream_rows ? loops.contiguous_stream : loops.contiguous;
  } else if (row.dst_stride == 1 && row.src_stride == 0) {
    copy_rows_ = stream_rows ? width.repeated_stream : width.repeated;
  } else if (row.dst_stride == 1 && row.src_stride == -1) {
    copy_rows_ = width.reversed;
  } else {
    copy_rows_ = width.strided;
  }
  rows_.src_step = row.src_stride * element_bytes_;
  rows_.dst_step = row.dst_stride * element_bytes_;
  rows_.src_row_step = column.src_stride * element_bytes_;
  rows_.dst_row_step = column.dst_stride * element_bytes_;

  const int64_t row_length = std::min(row.size, kCopyBlockBytes / element_bytes_);
  inner_ = {row_length, row.size - (CeilDiv(row.size, row_length) - 1) * row_length, -1};
  if (row_length < row.size) {
    inner_.loop = static_cast<int>(loops_.size());
    loops_.push_back({CeilDiv(row.size, row_length), row_length * rows_.src_step, row_length * rows_.dst_step});
  }
  const int64_t rows = std::min(column.size, std::max<int64_t>(1, kCopyBlockBytes / (row_length * element_bytes_)));
  outer_ = {rows, column.size - (CeilDiv(column.size, rows) - 1) * rows, -1};
  if (rows < column.size) {
    outer_.loop = static_cast<int>(loops_.size());
    loops_.push_back({CeilDiv(column.size, rows), rows * rows_.src_row_step, rows * rows_.dst_row_step});
  }
  if (is_run) {
    // Runs are counted in bytes.
    inner_.length *= element_bytes_;
    inner_.last_length *= element_bytes_;
  }
  if (axes.size() > 2) AddLoops(CopyAxes(axes.begin() + 2, axes.end()));
}

namespace {

// Axes that together are one side of a tile, the last one perhaps cut into parts. One side of the copy steps by one
// along them, within runs.
struct Group {
  CopyAxes axes;
  int64_t elements = 1;  // of a whole part
  int64_t run = 1;       // elements that follow each other on that side of the copy
  bool is_one_run = true;
  int64_t last_axis_length = 0;
  int64_t num_parts = 1;
  int64_t last_part_elements = 0;

  void Add(const CopyAxis& axis, int64_t stride) {
    is_one_run = is_one_run && stride == elements;
    axes.push_back(axis);
    elements *= axis.size;
    if (is_one_run) run = elements;
  }
};

// The sides of tiles, in elements: few rows of the source are read side by side, each far along, as long as the
// hardware sees a stream; in the destination they leave runs of some lines.
constexpr int64_t kRowSide = 64;
constexpr int64_t kColumnSide = 1024;
// The bytes that a tile covers in sequence in the source and the destination if it can, with sides up to this.
constexpr int64_t kSequenceBytes = 1024;
constexpr int64_t kInterleavedSide = 256;

// Cuts the last axis where the side is too long.
void CloseGroup(Group& group, int64_t side) {
  CopyAxis& last = group.axes.back();
  const int64_t others = group.elements / last.size;
  int64_t length = last.size;
  if (group.elements > 2 * side) length = std::min(last.size, CeilDiv(side, others));
  group.num_parts = CeilDiv(last.size, length);
  group.last_axis_length = length;
  group.elements = others * length;
  group.last_part_elements = others * (last.size - (group.num_parts - 1) * length);
}

std::vector<int64_t> GroupOffsets(const Group& group, int64_t CopyAxis::*stride) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(group.elements));
  offsets.push_back(0);
  for (const CopyAxis& axis : group.axes) {
    const bool is_last = &axis == &group.axes.back();
    const int64_t length = is_last ? group.last_axis_length : axis.size;
    const size_t faster = offsets.size();
    for (int64_t index = 1; index < length; ++index) {
      for (size_t i = 0; i < faster; ++i) offsets.push_back(offsets[i] + index * (axis.*stride));
    }
  }
  return offsets;
}

// Returns log2 of the side of the squares that take most of a tile: the largest side that leaves few elements over and
// does not reach beyond a run.
int SquareLog2Side(const Group& rows, const Group& columns, const std::array<CompositeTileFunction, 5>& functions) {
  const auto fits = [](const Group& group, int64_t side) {
    if (group.is_one_run) return group.elements / side * side * 4 >= group.elements * 3;
    return group.run % side == 0;
  };
  for (int log2_side = static_cast<int>(functions.size()) - 1; log2_side > 0; --log2_side) {
    const int64_t side = int64_t{1} << log2_side;
    if (functions[static_cast<size_t>(log2_side)] != nullptr && fits(rows, side) && fits(columns, side)) {
      return log2_side;
    }
  }
  return 0;
}

// Gathers the axes of a tile's two sides. Rows step by one in the destination, columns in the source.
class TileSides {
 public:
  // The first of the axes steps by one in the destination.
  TileSides(const CopyAxes& axes, int64_t element_bytes)
      : element_bytes_(element_bytes), rest_(axes.begin() + 1, axes.end()) {
    rows.Add(axes[0], 1);
  }

  // Returns false if no axis steps by one in the source.
  bool Grow() {
    if (!Extend(columns, &CopyAxis::src_stride, kColumnSide)) return false;
    for (bool grew = true; grew;) {
      grew = Extend(rows, &CopyAxis::dst_stride, kRowSide);
      grew = Extend(columns, &CopyAxis::src_stride, kColumnSide) || grew;
    }
    while (Interleave(columns, &CopyAxis::src_stride) || Interleave(rows, &CopyAxis::dst_stride)) {
    }
    CloseGroup(rows, kRowSide);
    CloseGroup(columns, kColumnSide);
    return true;
  }
  // Returns the axes that are on neither side.
  const CopyAxes& rest() const { return rest_; }

  Group rows, columns;

 private:
  void Take(Group& group, size_t next, int64_t CopyAxis::*stride) {
    group.Add(rest_[next], rest_[next].*stride);
    rest_.erase(rest_.begin() + static_cast<ptrdiff_t>(next));
  }

  // Takes the axis that continues the run of a side.
  bool Extend(Group& group, int64_t CopyAxis::*stride, int64_t side) {
    if (group.elements >= side) return false;
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i].*stride != group.elements) continue;
      Take(group, i, stride);
      return true;
    }
    return false;
  }

  // If the axes of both sides alternate, a tile of whole runs is scattered over memory. Takes in the axes between,
  // until the tile covers a few lines in sequence on either side of the copy.
  bool Interleave(Group& group, int64_t CopyAxis::*stride) {
    CopyAxes covered = rows.axes;
    covered.insert(covered.end(), columns.axes.begin(), columns.axes.end());
    std::sort(covered.begin(), covered.end(),
              [stride](const CopyAxis& a, const CopyAxis& b) { return a.*stride < b.*stride; });
    int64_t sequence = 1;
    for (const CopyAxis& axis : covered) {
      if (axis.*stride == sequence) sequence *= axis.size;
    }
    if (sequence * element_bytes_ >= kSequenceBytes) return false;
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i].*stride != sequence || rest_[i].size * group.elements > kInterleavedSide) continue;
      Take(group, i, stride);
      return true;
    }
    return false;
  }

  const int64_t element_bytes_;
  CopyAxes rest_;
};

}  // namespace

// A tile needs axes that step by one in the source (the columns) and others that step by one in the destination (the
// rows). Many small axes together make a side, so that arrays of high rank get tiles too.
bool StridedCopy::PlanTiles(const CopyAxes& axes, bool stream) {
  if (axes.size() < 2 || axes[0].dst_stride != 1 || axes[0].src_stride == 1 || axes[0].src_stride == 0) return false;
  TileSides sides(axes, element_bytes_);
  if (!sides.Grow()) return false;
  const Group &rows = sides.rows, &columns = sides.columns;

  tile_rows_.src = GroupOffsets(rows, &CopyAxis::src_stride);
  if (!rows.is_one_run) tile_rows_.dst = GroupOffsets(rows, &CopyAxis::dst_stride);
  tile_columns_.dst = GroupOffsets(columns, &CopyAxis::dst_stride);
  if (!columns.is_one_run) tile_columns_.src = GroupOffsets(columns, &CopyAxis::src_stride);
  inner_ = {rows.elements, rows.last_part_elements, -1};
  outer_ = {columns.elements, columns.last_part_elements, -1};
  const auto add_parts = [this](const Group& group, BlockAxis& block_axis) {
    if (group.num_parts == 1) return;
    block_axis.loop = static_cast<int>(loops_.size());
    const CopyAxis& last = group.axes.back();
    loops_.push_back({group.num_parts, group.last_axis_length * last.src_stride * element_bytes_,
                      group.last_axis_length * last.dst_stride * element_bytes_});
  };
  add_parts(rows, inner_);
  add_parts(columns, outer_);
  AddLoops(sides.rest());

  const StridedCopyLoops::Width& width = GetStridedCopyLoops().widths[Log2Bytes(element_bytes_)];
  const size_t log2_side = static_cast<size_t>(SquareLog2Side(rows, columns, width.composite));
  transpose_ = width.composite[log2_side];
  bool whole_lines = stream && IsWholeLines(rows.is_one_run ? 0 : rows.run * element_bytes_);
  for (int64_t offset : tile_columns_.dst) whole_lines = whole_lines && IsWholeLines(offset * element_bytes_);
  for (const Loop& loop : loops_) whole_lines = whole_lines && IsWholeLines(loop.dst_step);
  transpose_stream_ = whole_lines ? width.composite_stream[log2_side] : transpose_;
  return true;
}

void StridedCopy::RunOneBlock(int64_t inner, int64_t outer, const char* src, char* dst) const {
  if (copy_rows_ != nullptr) {
    RowBlock block = rows_;
    block.count = inner;
    block.rows = outer;
    copy_rows_(src, dst, block);
    return;
  }
  const bool aligned = reinterpret_cast<uintptr_t>(dst) % 64 == 0;
  const auto table = [](const std::vector<int64_t>& offsets) { return offsets.empty() ? nullptr : offsets.data(); };
  (aligned ? transpose_stream_ : transpose_)(
      src, dst,
      {table(tile_columns_.src), tile_rows_.src.data(), tile_columns_.dst.data(), table(tile_rows_.dst), outer, inner});
}

void StridedCopy::RunBlocks(int64_t begin, int64_t end, const char* src, char* dst) const {
  int64_t index[kMaxAxes + 2];
  const size_t num_loops = loops_.size();
  int64_t rest = begin;
  for (size_t k = 0; k < num_loops; ++k) {
    index[k] = rest % loops_[k].count;
    rest /= loops_[k].count;
    src += index[k] * loops_[k].src_step;
    dst += index[k] * loops_[k].dst_step;
  }
  const auto length = [&](const BlockAxis& axis) {
    const size_t loop = static_cast<size_t>(axis.loop);
    return axis.loop >= 0 && index[loop] == loops_[loop].count - 1 ? axis.last_length : axis.length;
  };
  for (int64_t block = begin; block < end; ++block) {
    RunOneBlock(length(inner_), length(outer_), src, dst);
    for (size_t k = 0; k < num_loops; ++k) {
      const Loop& loop = loops_[k];
      src += loop.src_step;
      dst += loop.dst_step;
      if (++index[k] < loop.count) break;
      src -= loop.count * loop.src_step;
      dst -= loop.count * loop.dst_step;
      index[k] = 0;
    }
  }
}

void StridedCopy::RunTask(int64_t task, const void* src, void* dst) const {
  const int64_t share = num_blocks_ / num_tasks_;
  const int64_t longer = num_blocks_ % num_tasks_;
  const int64_t begin = task * share + std::min(task, longer);
  const int64_t end = begin + share + (task < longer ? 1 : 0);
  RunBlocks(begin, end, static_cast<const char*>(src), static_cast<char*>(dst));
}

void StridedCopy::Run(const void* src, void* dst) const {
  if (num_blocks_ > 0) RunBlocks(0, num_blocks_, static_cast<const char*>(src), static_cast<char*>(dst));
}

void RunCopy(const StridedCopy& copy, const void* from, void* into, ThreadPool* pool) {
  if (copy.num_tasks() <= 1) {
    copy.Run(from, into);
  } else {
    pool->ParallelFor(copy.num_tasks(), [&](int64_t task) { copy.RunTask(task, from, into); });
  }
}

}  // namespace tensord::cpu
