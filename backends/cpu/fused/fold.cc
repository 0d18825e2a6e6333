#include "backends/cpu/fused/fold.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/math/half_conversion.h"
#include "engine/base/rounding.h"

namespace tensord::cpu {
namespace {

// Accumulators side by side: four vectors of AVX-512 hide how long additions take.
constexpr int64_t kFoldLaneBytes = 256;

ReduceOp OpOf(ReduceKind kind, DType dtype) {
  const bool is_bool = dtype == DType::kBool;
  switch (kind) {
    case ReduceKind::kProduct:
      return is_bool ? ReduceOp::kAnd : ReduceOp::kProduct;
    case ReduceKind::kMax:
      return is_bool ? ReduceOp::kOr : ReduceOp::kMax;
    case ReduceKind::kMin:
      return is_bool ? ReduceOp::kAnd : ReduceOp::kMin;
    case ReduceKind::kAnd:
      return ReduceOp::kAnd;
    case ReduceKind::kOr:
      return ReduceOp::kOr;
    case ReduceKind::kSum:
    case ReduceKind::kUnspecified:
      break;
  }
  return is_bool ? ReduceOp::kOr : ReduceOp::kSum;
}

}  // namespace

FusedFold::FusedFold(ReduceKind kind, DType dtype)
    : dtype_(dtype), op_(OpOf(kind, dtype)), is_half_(dtype == DType::kF16 || dtype == DType::kBF16) {
  DType accumulated = is_half_ ? DType::kF32 : dtype;
  accumulator_bytes_ = SizeOf(accumulated);
  if (kComplexes.Contains(dtype) && op_ == ReduceOp::kSum) {
    accumulated = RealPartOf(dtype);
    parts_ = 2;
  }
  loops_ = GetReduceLoops(op_, accumulated);
  is_exact_ = (op_ != ReduceOp::kSum && op_ != ReduceOp::kProduct) || kIntegers.Contains(dtype);
}

void FusedFold::Plan(int64_t width, int64_t tile_rows, int64_t num_tiles, int64_t num_parts) {
  const int64_t row_bytes = std::max<int64_t>(1, width) * accumulator_bytes_;
  folds_runs_ = width == 1 && parts_ == 1 && tile_rows * accumulator_bytes_ <= kMaxRunBytes;
  is_one_run_ = folds_runs_ && num_tiles == 1 && num_parts == 1 && !is_half_;
  const uint64_t wanted = static_cast<uint64_t>(std::max<int64_t>(1, std::min(tile_rows, kFoldLaneBytes / row_bytes)));
  lanes_ = folds_runs_ ? 1 : static_cast<int64_t>(std::bit_floor(wanted));
  level_bytes_ = RoundUp(row_bytes * lanes_, 64);
  wide_bytes_ = is_half_ ? RoundUp(width * tile_rows * accumulator_bytes_, 64) : 0;
  levels_ = 1;
  if (is_exact_) return;
  // Additions to one accumulator, at most.
  const int64_t a_tile = folds_runs_ ? 1 : tile_rows / lanes_ / 8 + 4;
  int64_t additions = std::max(num_tiles * a_tile, num_parts);
  while (additions >= Cascade::kRadix && levels_ < Cascade::kMaxLevels) {
    additions /= Cascade::kRadix;
    ++levels_;
  }
}

Cascade FusedFold::Start(int64_t width, char* state) const {
  return Cascade(loops_, width * lanes_ * parts_, width * lanes_ * accumulator_bytes_, levels_, level_bytes_, state);
}

void FusedFold::Add(const void* x, int64_t width, int64_t rows, char* state, Cascade& cascade) const {
  if (is_half_) {
    float* const wide = reinterpret_cast<float*>(state + levels_ * level_bytes_);
    WidenHalf(dtype_, static_cast<const uint16_t*>(x), wide, width * rows);
    x = wide;
  }
  if (is_one_run_) return loops_.reduce_runs(x, rows, rows, 1, state);
  if (folds_runs_) {
    alignas(16) char value[16];
    loops_.reduce_runs(x, rows, rows, 1, value);
    cascade.Add(value, 1, 1, 1);
    return;
  }
  const int64_t row = width * lanes_ * parts_;
  const int64_t whole = rows / lanes_;
  if (whole > 0) cascade.Add(x, row, whole, row);
  const int64_t left = rows % lanes_ * width * parts_;
  if (left > 0) {
    const int64_t done = whole * lanes_ * width * accumulator_bytes_;
    cascade.Add(static_cast<const char*>(x) + done, left, 1, left);
  }
}

void FusedFold::AddProducts(const void* x, const void* y, int64_t rows, char* state, Cascade& cascade) const {
  if (is_one_run_) return loops_.sum_products(x, y, rows, state);
  alignas(16) char value[16];
  loops_.sum_products(x, y, rows, value);
  cascade.Add(value, 1, 1, 1);
}

void FusedFold::Finish(int64_t width, const char* state, Cascade& cascade, void* results) const {
  if (is_one_run_) {
    // A size that the compiler knows: a call takes as long as the fold of a short row.
    if (accumulator_bytes_ == 4) {
      std::memcpy(results, state, 4);
    } else {
      std::memcpy(results, state, static_cast<size_t>(accumulator_bytes_));
    }
    return;
  }
  char* const accumulators = cascade.Finish();
  for (int64_t half = lanes_ / 2; half >= 1; half /= 2) {
    loops_.accumulate(accumulators + half * width * accumulator_bytes_, 0, 1, half * width * parts_, accumulators);
  }
  if (is_half_) {
    NarrowToHalf(dtype_, reinterpret_cast<const float*>(accumulators), static_cast<uint16_t*>(results), width);
  } else {
    std::memcpy(results, accumulators, static_cast<size_t>(width * accumulator_bytes_));
  }
}

void FusedFold::Partial(int64_t width, Cascade& cascade, void* partial) const {
  std::memcpy(partial, cascade.Finish(), static_cast<size_t>(width * lanes_ * accumulator_bytes_));
}

void FusedFold::Join(int64_t width, const void* partials, int64_t step_bytes, int64_t parts, char* state,
                     void* results) const {
  Cascade cascade = Start(width, state);
  const int64_t step = step_bytes / accumulator_bytes_ * parts_;
  cascade.Add(partials, step, parts, width * lanes_ * parts_);
  Finish(width, state, cascade, results);
}

}  // namespace tensord::cpu
