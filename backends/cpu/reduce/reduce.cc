#include "backends/cpu/reduce/reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/math/half_conversion.h"
#include "backends/cpu/reduce/cascade.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kAccumulatorRowBytes = 2048;  // of one level of the cascade, at most
constexpr int64_t kUnitRows = 128;              // rows that the first level takes up, eight in one addition
// Rows that are added up side by side: four vectors of AVX-512 hide how long additions take. Of sources from this size
// on rows are longer, or the processor's prefetchers lose them.
constexpr int64_t kReduceLaneBytes = 256;
constexpr int64_t kLongSourceBytes = int64_t{64} << 10;
// A short leading axis beside so many columns is transposed in tiles that stay in the nearest cache.
constexpr int64_t kTileBytes = int64_t{16} << 10;
constexpr int64_t kMinTileColumns = 16;
constexpr int64_t kShortAxis = 256;
constexpr int64_t kWidenElements = 4096;  // 16 KiB of F32 on the stack
// Tasks of some 5 µs of memory, so that threads end together.
constexpr int64_t kReduceTaskBytes = int64_t{128} << 10;
constexpr int64_t kMaxReduceTasks = 1024;
constexpr int64_t kMaxSplits = 32;  // of few results, whose parts are added up afterwards

ReduceOp BoolOp(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
      return ReduceOp::kOr;
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
      return ReduceOp::kAnd;
    default:
      return op;
  }
}

}  // namespace

struct Reduction::CascadeStorage {
  alignas(64) char bytes[Cascade::kMaxLevels * kAccumulatorRowBytes];
};

Reduction::Reduction(ReduceOp op, DType dtype, absl::Span<const int64_t> shape, absl::Span<const int64_t> axes)
    : dtype_(dtype), element_bytes_(SizeOf(dtype)) {
  DType accumulated = dtype;
  if (dtype == DType::kBool) op = BoolOp(op);
  if (kHalves.Contains(dtype)) accumulated = DType::kF32;
  accumulator_bytes_ = SizeOf(accumulated);
  if (kComplexes.Contains(dtype) && op == ReduceOp::kSum) {
    accumulated = RealPartOf(dtype);
    parts_ = 2;
  }
  loops_ = GetReduceLoops(op, accumulated);

  num_results_ = 1;
  num_reduced_ = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    (is_reduced ? num_reduced_ : num_results_) *= shape[i];
  }
  if (num_results_ == 0) return;
  Axes merged = MergeAxes(shape, axes);
  if (num_reduced_ > 0 && WantsPermutation(merged)) merged = PlanPermutation(merged);
  PlanForm(merged);
  PlanTasks();
}

Reduction::Axes Reduction::MergeAxes(absl::Span<const int64_t> shape, absl::Span<const int64_t> reduced) {
  Axes merged;
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(i)) != reduced.end();
    if (shape[i] != 1) {
      if (!merged.empty() && merged.back().is_reduced == is_reduced) {
        merged.back().size *= shape[i];
      } else {
        merged.push_back({shape[i], stride, is_reduced});
      }
    }
    stride *= shape[i];
  }
  return merged;
}

// Runs of a few elements, kept and reduced ones by turns, cost more than putting them in order first.
bool Reduction::WantsPermutation(const Axes& axes) const {
  if (axes.size() < 3 || num_results_ * num_reduced_ <= 4096) return false;
  if (axes[0].is_reduced) return axes[0].size < kShortAxis && axes[1].size < kMinTileColumns;
  return axes[0].size * accumulator_bytes_ < kReduceLaneBytes && axes[0].size * axes[1].size < kShortAxis;
}

Reduction::Axes Reduction::PlanPermutation(const Axes& axes) {
  absl::InlinedVector<CopyAxis, 8> copy;
  int64_t stride = 1;
  for (bool is_reduced : {false, true}) {
    for (const Axis& axis : axes) {
      if (axis.is_reduced != is_reduced) continue;
      copy.push_back({axis.size, axis.stride, stride});
      stride *= axis.size;
    }
  }
  permutation_ = StridedCopy(copy, element_bytes_);
  permuted_bytes_ = CeilDiv(permutation_.dst_bytes(), 64) * 64;
  return {{num_results_, 1, false}, {num_reduced_, num_results_, true}};
}

void Reduction::PlanForm(const Axes& axes) {
  size_t next = 0;
  Axis kept = {1, 1, false};
  Axis reduced = {1, 1, true};
  if (next < axes.size() && !axes[next].is_reduced) kept = axes[next++];
  if (next < axes.size()) reduced = axes[next++];
  const bool leads = kept.size == 1;  // with the reduced axis
  if (leads && loops_.has_short_runs && parts_ == 1 && !kHalves.Contains(dtype_) &&
      reduced.size * accumulator_bytes_ <= kMaxRunBytes) {
    run_elements_ = reduced.size;
    if (next < axes.size()) kept = axes[next++];
    row_elements_ = kept.size;
    block_src_step_ = kept.stride;
    block_elements_ = std::min(kept.size, kAccumulatorRowBytes / accumulator_bytes_);
    return PlanLoops(axes, next);
  }
  if (leads && reduced.size < kShortAxis && next < axes.size() && axes[next].size >= kMinTileColumns) {
    transposes_ = true;
    kept = axes[next++];
  }
  row_elements_ = kept.size;
  num_rows_ = reduced.size;
  row_step_ = reduced.stride;
  block_src_step_ = kept.stride;
  block_elements_ = std::min(kept.size, kAccumulatorRowBytes / accumulator_bytes_);
  if (transposes_) {
    const int64_t fit =
        kTileBytes / (std::max<int64_t>(num_rows_, 1) * element_bytes_) / kMinTileColumns * kMinTileColumns;
    block_elements_ = std::min(kept.size, std::clamp(fit, kMinTileColumns, int64_t{128}));
    for (int64_t j = 0; j < block_elements_; ++j) tile_src_offsets_.push_back(j * kept.stride);
    for (int64_t i = 0; i < num_rows_; ++i) tile_dst_offsets_.push_back(i * block_elements_);
    transpose_ = GetStridedCopyLoops().widths[std::countr_zero(static_cast<uint64_t>(element_bytes_))].tile;
    row_step_ = block_elements_;
    return PlanLoops(axes, next);
  }
  // The hardware prefetcher follows longer rows; short sources would not fill them.
  const int64_t row_bytes = kept.size * accumulator_bytes_;
  const bool is_long = row_bytes * num_rows_ >= kLongSourceBytes;
  const int64_t lane_bytes = is_long ? kAccumulatorRowBytes : kReduceLaneBytes;
  if (2 * row_bytes <= lane_bytes && num_rows_ > 1) {
    const uint64_t wanted = std::bit_floor(static_cast<uint64_t>(lane_bytes / row_bytes));
    lanes_ = static_cast<int64_t>(std::min(wanted, std::bit_floor(static_cast<uint64_t>(num_rows_))));
    leftover_elements_ = num_rows_ % lanes_ * kept.size;
    num_rows_ /= lanes_;
    row_step_ *= lanes_;
  }
  PlanLoops(axes, next);
}

void Reduction::PlanLoops(const Axes& axes, size_t next) {
  for (; next < axes.size(); ++next) (axes[next].is_reduced ? reduced_loops_ : kept_loops_).push_back(axes[next]);
}

void Reduction::PlanTasks() {
  blocks_per_row_ = CeilDiv(row_elements_, block_elements_);
  num_blocks_ = blocks_per_row_;
  for (const Axis& axis : kept_loops_) num_blocks_ *= axis.size;
  chunks_ = transposes_ || run_elements_ > 0 ? 1 : CeilDiv(num_rows_, kUnitRows);
  num_units_ = num_reduced_ == 0 ? 0 : chunks_;
  for (const Axis& axis : reduced_loops_) num_units_ *= axis.size;

  const int64_t bytes = num_results_ * num_reduced_ * element_bytes_;
  if (run_elements_ > 0 && reduced_loops_.empty() && kept_loops_.empty()) {
    stores_runs_ = true;
    num_tasks_ = std::clamp(bytes / kReduceTaskBytes, int64_t{1}, std::min(row_elements_, kMaxReduceTasks));
    return;
  }
  if (num_blocks_ < kMaxSplits / 2 && bytes >= 4 * kReduceTaskBytes) {
    num_splits_ = std::clamp(std::min(num_units_, bytes / kReduceTaskBytes / num_blocks_), int64_t{1}, kMaxSplits);
  }
  if (num_splits_ > 1) {
    num_tasks_ = num_blocks_ * num_splits_;
    partial_bytes_ = num_tasks_ * kAccumulatorRowBytes;
  } else {
    num_tasks_ = std::clamp(bytes / kReduceTaskBytes, int64_t{1}, std::min(num_blocks_, kMaxReduceTasks));
  }
}

Cascade Reduction::MakeCascade(int64_t count, CascadeStorage& storage) const {
  return Cascade(loops_, count * lanes_ * parts_, count * lanes_ * accumulator_bytes_, Cascade::kMaxLevels,
                 kAccumulatorRowBytes, storage.bytes);
}

void Reduction::AddToCascade(const char* x, int64_t step, int64_t rows, int64_t count, Cascade& cascade) const {
  if (!kHalves.Contains(dtype_)) {
    cascade.Add(x, step * parts_, rows, count * parts_);
    return;
  }
  alignas(64) float wide[kWidenElements];
  const uint16_t* half = reinterpret_cast<const uint16_t*>(x);
  const int64_t rows_at_once = std::max<int64_t>(1, kWidenElements / count);
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    const int64_t some = std::min(rows_at_once, rows - row);
    if (step == count) {
      WidenHalf(dtype_, half + row * step, wide, some * count);
    } else {
      for (int64_t r = 0; r < some; ++r) WidenHalf(dtype_, half + (row + r) * step, wide + r * count, count);
    }
    cascade.Add(wide, count, some, count);
  }
}

void Reduction::AddUnit(const char* block, int64_t unit, int64_t count, Cascade& cascade) const {
  const int64_t chunk = unit % chunks_;
  int64_t rest = unit / chunks_;
  int64_t offset = 0;
  for (const Axis& axis : reduced_loops_) {
    offset += rest % axis.size * axis.stride;
    rest /= axis.size;
  }
  const char* x = block + offset * element_bytes_;
  if (run_elements_ > 0) {
    alignas(64) char row[kAccumulatorRowBytes];
    loops_.reduce_runs(x, run_elements_, block_src_step_, count, row);
    cascade.Add(row, 0, 1, count);
    return;
  }
  if (transposes_) {
    alignas(64) char tile[kShortAxis * kMinTileColumns * 16];
    transpose_(x, tile, tile_src_offsets_.data(), tile_dst_offsets_.data(), num_rows_, count);
    AddToCascade(tile, row_step_, num_rows_, count, cascade);
    return;
  }
  const int64_t begin = chunk * kUnitRows;
  x += begin * row_step_ * element_bytes_;
  const int64_t rows = std::min(kUnitRows, num_rows_ - begin);
  AddToCascade(x, row_step_, rows, count * lanes_, cascade);
  if (chunk == chunks_ - 1 && leftover_elements_ > 0) {
    AddToCascade(x + rows * row_step_ * element_bytes_, leftover_elements_, 1, leftover_elements_, cascade);
  }
}

const char* Reduction::BlockStart(const char* src, int64_t block) const {
  int64_t offset = block % blocks_per_row_ * block_elements_ * block_src_step_;
  int64_t rest = block / blocks_per_row_;
  for (const Axis& axis : kept_loops_) {
    offset += rest % axis.size * axis.stride;
    rest /= axis.size;
  }
  return src + offset * element_bytes_;
}

int64_t Reduction::BlockCount(int64_t block) const {
  return std::min(block_elements_, row_elements_ - block % blocks_per_row_ * block_elements_);
}

void Reduction::StoreResult(int64_t block, Cascade& cascade, char* dst) const {
  const int64_t count = BlockCount(block);
  char* accumulators = cascade.Finish();
  for (int64_t half = lanes_ / 2; half >= 1; half /= 2) {
    loops_.accumulate(accumulators + half * count * accumulator_bytes_, 0, 1, half * count * parts_, accumulators);
  }
  const int64_t first = block / blocks_per_row_ * row_elements_ + block % blocks_per_row_ * block_elements_;
  char* results = dst + first * element_bytes_;
  if (kHalves.Contains(dtype_)) {
    NarrowToHalf(dtype_, reinterpret_cast<const float*>(accumulators), reinterpret_cast<uint16_t*>(results), count);
  } else {
    std::memcpy(results, accumulators, static_cast<size_t>(count * element_bytes_));
  }
}

void Reduction::ReduceBlock(int64_t block, const char* src, char* dst) const {
  const int64_t count = BlockCount(block);
  CascadeStorage storage;
  Cascade cascade = MakeCascade(count, storage);
  const char* start = BlockStart(src, block);
  for (int64_t unit = 0; unit < num_units_; ++unit) {
    if (StopRequested()) return;
    AddUnit(start, unit, count, cascade);
  }
  StoreResult(block, cascade, dst);
}

void Reduction::ReducePart(int64_t block, int64_t split, const char* src, char* partial) const {
  const int64_t count = BlockCount(block);
  const int64_t bytes = count * lanes_ * accumulator_bytes_;
  CascadeStorage storage;
  Cascade cascade = MakeCascade(count, storage);
  const char* start = BlockStart(src, block);
  const int64_t end = ShareBegin(num_units_, num_splits_, split + 1);
  for (int64_t unit = ShareBegin(num_units_, num_splits_, split); unit < end; ++unit) {
    if (StopRequested()) return;
    AddUnit(start, unit, count, cascade);
  }
  std::memcpy(partial, cascade.Finish(), static_cast<size_t>(bytes));
}

void Reduction::JoinParts(int64_t block, const char* partials, char* dst) const {
  const int64_t accumulators = BlockCount(block) * lanes_ * parts_;
  CascadeStorage storage;
  Cascade cascade = MakeCascade(BlockCount(block), storage);
  const int64_t step = kAccumulatorRowBytes / accumulator_bytes_ * parts_;
  cascade.Add(partials + block * num_splits_ * kAccumulatorRowBytes, step, num_splits_, accumulators);
  StoreResult(block, cascade, dst);
}

void Reduction::Run(const void* src, void* dst, void* scratch, ThreadPool& pool) const {
  if (num_blocks_ == 0) return;
  const char* from = static_cast<const char*>(src);
  char* to = static_cast<char*>(dst);
  if (permuted_bytes_ > 0) {
    pool.ParallelFor(permutation_.num_tasks(), [&](int64_t task) { permutation_.RunTask(task, src, scratch); });
    from = static_cast<const char*>(scratch);
  }
  if (num_splits_ == 1) {
    const int64_t count = stores_runs_ ? row_elements_ : num_blocks_;
    const auto reduce = [&](int64_t task) {
      const int64_t begin = ShareBegin(count, num_tasks_, task);
      const int64_t end = ShareBegin(count, num_tasks_, task + 1);
      if (stores_runs_) {
        loops_.reduce_runs(from + begin * block_src_step_ * element_bytes_, run_elements_, block_src_step_, end - begin,
                           to + begin * element_bytes_);
        return;
      }
      for (int64_t block = begin; block < end && !StopRequested(); ++block) ReduceBlock(block, from, to);
    };
    if (num_tasks_ == 1) {
      reduce(0);
    } else {
      pool.ParallelFor(num_tasks_, reduce);
    }
    return;
  }
  char* partials = static_cast<char*>(scratch) + permuted_bytes_;
  const auto reduce_part = [&](int64_t task) {
    ReducePart(task / num_splits_, task % num_splits_, from, partials + task * kAccumulatorRowBytes);
  };
  if (!pool.ParallelFor(num_tasks_, reduce_part)) return;
  for (int64_t block = 0; block < num_blocks_; ++block) JoinParts(block, partials, to);
}

}  // namespace tensord::cpu
