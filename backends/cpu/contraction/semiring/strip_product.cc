#include "backends/cpu/contraction/semiring/strip_product.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "backends/cpu/machine/blas.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// Above so many columns a packed panel of rows is used often enough.
constexpr int64_t kMostStripColumns = 8;
constexpr int64_t kMostDots = 4;
constexpr int64_t kSmallProducts = 48 * 48 * 48;  // of a matrix that stays in the first cache
constexpr int64_t kMostCopied = int64_t{32} << 10;
constexpr int64_t kProductsATask = 64 * 1024;  // what is worth spreading

int64_t StrideOf(const DotSpace& space, DotRole role, DotSide side) {
  return space.roles[role].empty() ? 1 : space.roles[role][0].strides[side];
}

// Copies rows into lanes that lie side by side, a term after the other; lanes without a row are 0, which needs no care.
template <typename T>
void CopyRows(const SemiringStrip& s, int64_t step, T* to) {
  const T* const from = static_cast<const T*>(s.a);
  for (int64_t k = 0; k < s.terms; ++k) {
    T* const lanes = to + k * step;
    for (int64_t r = 0; r < s.rows; ++r) lanes[r] = from[r * s.a_row + k * s.a_term];
    std::fill(lanes + s.rows, lanes + step, T());
  }
}

template <typename T>
void StoreRows(const T* from, int64_t step, const SemiringStrip& s) {
  T* const to = static_cast<T*>(s.c);
  for (int64_t n = 0; n < s.columns; ++n) {
    for (int64_t r = 0; r < s.rows; ++r) to[r * s.c_row + n * s.c_column] = from[n * step + r];
  }
}

// Calls fn with a null pointer to numbers of so many bytes.
template <typename Fn>
void WithUnit(int64_t bytes, const Fn& fn) {
  if (bytes == 1) return fn(static_cast<uint8_t*>(nullptr));
  if (bytes == 4) return fn(static_cast<uint32_t*>(nullptr));
  fn(static_cast<uint64_t*>(nullptr));
}

}  // namespace

std::optional<StripProduct> StripProduct::Plan(const DotSpace& space, Algebra algebra, DType dtype) {
  if (kHalves.Contains(dtype) || space.Size(kSummed) == 0) return std::nullopt;
  for (const DotRole role : {kRows, kColumns, kSummed}) {
    if (space.roles[role].size() > 1) return std::nullopt;
  }
  StripProduct product;
  product.unit_ = SizeOf(dtype);
  product.loops_ = GetStripLoops(algebra, dtype);
  // Rows had better be many.
  product.swaps_ = space.Size(kColumns) > space.Size(kRows);
  if (!product.PlanAsIs(product.swaps_ ? Swapped(space) : space)) {
    product.swaps_ = !product.swaps_;
    if (!product.PlanAsIs(product.swaps_ ? Swapped(space) : space)) return std::nullopt;
  }
  product.CutTasks();
  return product;
}

bool StripProduct::PlanAsIs(const DotSpace& space) {
  space_ = space;
  batch_ = space.Size(kBatch);
  matrix_ = {.rows = space.Size(kRows),
             .columns = space.Size(kColumns),
             .terms = space.Size(kSummed),
             .a_row = StrideOf(space, kRows, kLhs),
             .a_term = StrideOf(space, kSummed, kLhs),
             .b_term = StrideOf(space, kSummed, kRhs),
             .b_column = StrideOf(space, kColumns, kRhs),
             .c_row = StrideOf(space, kRows, kDotResult),
             .c_column = StrideOf(space, kColumns, kDotResult)};
  const double products =
      static_cast<double>(matrix_.rows) * static_cast<double>(matrix_.columns) * static_cast<double>(matrix_.terms);
  const bool is_small = products <= static_cast<double>(kSmallProducts);
  products_ = static_cast<int64_t>(std::min(products, 1e18));
  const bool are_dots = matrix_.a_term == 1 && matrix_.b_term == 1 && matrix_.terms >= 2 * loops_.lanes;
  if (are_dots && (matrix_.columns <= kMostDots || matrix_.rows <= kMostDots)) {
    way_ = Way::kAlongTerms;
    return true;
  }
  const bool runs = matrix_.a_row == 1 && matrix_.rows >= loops_.lanes;
  if (runs && (is_small || matrix_.columns <= kMostStripColumns)) {
    way_ = Way::kAlongRows;
    return true;
  }
  const int64_t padded = RoundUp(matrix_.rows, loops_.lanes);
  if (!is_small || std::max(matrix_.terms, matrix_.columns) * padded * unit_ > kMostCopied) return false;
  way_ = Way::kCopied;
  slot_bytes_ = RoundUp(matrix_.terms * padded * unit_, 64) + RoundUp(matrix_.columns * padded * unit_, 64);
  return true;
}

void StripProduct::CutTasks() {
  if (way_ == Way::kCopied || products_ <= kProductsATask) {
    matrices_a_task_ = std::max<int64_t>(1, kProductsATask / std::max<int64_t>(1, products_));
    rows_a_task_ = matrix_.rows;
  } else {
    const int64_t a_row = products_ / matrix_.rows;
    const int64_t unit = way_ == Way::kAlongRows ? loops_.rows : 4;
    rows_a_task_ = RoundUp(std::max<int64_t>(1, kProductsATask / std::max<int64_t>(1, a_row)), unit);
    row_tasks_ = std::max<int64_t>(1, matrix_.rows / rows_a_task_);  // the last one is the longest
  }
  num_tasks_ = CeilDiv(batch_, matrices_a_task_) * row_tasks_;
  slots_ = std::min<int64_t>(std::clamp<int64_t>(MachineCores(), 1, 16), num_tasks_);
}

absl::string_view StripProduct::way() const {
  switch (way_) {
    case Way::kAlongRows:
      return "read as it lies, lanes along rows";
    case Way::kAlongTerms:
      return "read as it lies, lanes along the sum";
    case Way::kCopied:
      return "small matrices, one copied";
  }
  return "";
}

void StripProduct::Run(const void* lhs, const void* rhs, void* result, void* workspace, ThreadPool& pool) const {
  const char* a = static_cast<const char*>(lhs);
  const char* b = static_cast<const char*>(rhs);
  if (swaps_) std::swap(a, b);
  std::atomic<int64_t> next{0};
  const auto run = [&](int64_t slot) {
    while (!StopRequested()) {
      const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= num_tasks_) return;
      RunTask(task, a, b, static_cast<char*>(result), static_cast<char*>(workspace) + slot * slot_bytes_);
    }
  };
  if (slots_ == 1) return run(0);
  pool.ParallelFor(slots_, run);
}

void StripProduct::RunTask(int64_t task, const char* lhs, const char* rhs, char* result, char* slot) const {
  SemiringStrip strip = matrix_;
  const int64_t part = task % row_tasks_;
  const int64_t row = part * rows_a_task_;
  strip.rows = part == row_tasks_ - 1 ? matrix_.rows - row : rows_a_task_;
  const int64_t first = task / row_tasks_ * matrices_a_task_;
  const int64_t end = std::min(batch_, first + matrices_a_task_);
  const DotAxisList& batch = space_.roles[kBatch];
  for (int64_t i = first; i < end; ++i) {
    strip.a = lhs + (OffsetOf(kLhs, batch, i) + row * strip.a_row) * unit_;
    strip.b = rhs + OffsetOf(kRhs, batch, i) * unit_;
    strip.c = result + (OffsetOf(kDotResult, batch, i) + row * strip.c_row) * unit_;
    RunMatrix(strip, slot);
  }
}

void StripProduct::RunMatrix(SemiringStrip strip, char* slot) const {
  if (way_ == Way::kAlongTerms) return loops_.along_terms(strip);
  if (way_ == Way::kAlongRows) return loops_.along_rows(strip);
  const int64_t padded = RoundUp(strip.rows, loops_.lanes);
  SemiringStrip copied = strip;
  copied.a = slot;
  copied.c = slot + RoundUp(strip.terms * padded * unit_, 64);
  copied.rows = padded;
  copied.a_row = copied.c_row = 1;
  copied.a_term = copied.c_column = padded;
  WithUnit(unit_, [&]<typename T>(T*) {
    CopyRows(strip, padded, static_cast<T*>(static_cast<void*>(slot)));
    loops_.along_rows(copied);
    StoreRows(static_cast<const T*>(copied.c), padded, strip);
  });
}

}  // namespace tensord::cpu
