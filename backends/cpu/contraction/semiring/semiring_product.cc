#include "backends/cpu/contraction/semiring/semiring_product.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/machine/blas.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"
#include "engine/ops/semiring.h"

namespace tensord::cpu {
namespace {

// A part of the operands at a time: in the second cache, with enough columns and rows to pack little for each product.
constexpr int64_t kMostTerms = 256;
constexpr int64_t kMostRows = 256;  // packed elements
constexpr int64_t kMostColumns = 240;
constexpr int64_t kLeastColumns = 24;
constexpr int64_t kFewColumns = 60;       // to pack rows for fewer shows
constexpr int64_t kColumnsOfTiles = 6;    // of SemiringLoops, so that no tile is narrow
constexpr int64_t kBlocksAThread = 4;     // for all threads to be busy until the end
constexpr double kOneThread = 64 * 1024;  // products that are not worth spreading

bool StartsResult(const DotAxisList& axes) { return !axes.empty() && axes[0].strides[kDotResult] == 1; }

// Writes the places of elements `begin` … `begin` + `count` of a role on two sides.
void WritePlaces(const DotAxisList& axes, int64_t begin, int64_t count, DotSide x, DotSide y, int64_t* on_x,
                 int64_t* on_y) {
  absl::InlinedVector<int64_t, 8> index;
  int64_t at_x = 0, at_y = 0;
  for (const DotAxis& axis : axes) {
    index.push_back(begin % axis.size);
    begin /= axis.size;
    at_x += index.back() * axis.strides[x];
    at_y += index.back() * axis.strides[y];
  }
  for (int64_t i = 0; i < count; ++i) {
    on_x[i] = at_x;
    on_y[i] = at_y;
    for (size_t a = 0; a < axes.size(); ++a) {
      at_x += axes[a].strides[x];
      at_y += axes[a].strides[y];
      if (++index[a] < axes[a].size) break;
      index[a] = 0;
      at_x -= axes[a].size * axes[a].strides[x];
      at_y -= axes[a].size * axes[a].strides[y];
    }
  }
}

}  // namespace

struct SemiringProduct::Slot {
  // The rows that are packed, if they are of all terms, and what was found among them.
  int64_t packed_rows = -1;
  uint32_t found = 0;
  bool has_stand_in = false;
  char* lhs;
  char* rhs;
  char* sums;
  // Places of rows, columns and terms, on an operand and on the result; of terms on both operands.
  int64_t* rows[2];
  int64_t* columns[2];
  int64_t* terms[2];
};

SemiringProduct::SemiringProduct(const DotSpace& space, Algebra algebra, DType dtype)
    : space_(space),
      algebra_(algebra),
      strips_(StripProduct::Plan(space, algebra, dtype)),
      element_bytes_(SizeOf(dtype)),
      panels_(GetSemiringPanels(dtype)),
      loops_(GetSemiringLoops(algebra, panels_.packed)) {
  if (strips_.has_value()) return;
  // Products commute. Vectors lie along rows: there had better be many, side by side in the result.
  const int64_t rows = space_.Size(kRows), columns = space_.Size(kColumns);
  const int64_t vector_rows = loops_.narrow * panels_.rows_an_element;
  const bool fills = rows >= vector_rows;
  swaps_ = fills ? columns >= vector_rows && StartsResult(space_.roles[kColumns]) : columns > rows;
  if (swaps_) space_ = Swapped(std::move(space_));
  for (const DotRole role : {kRows, kColumns, kSummed, kBatch}) sizes_[role] = space_.Size(role);
  ChooseBlocks();
}

int64_t SemiringProduct::PackedRows(int64_t rows) const {
  const int64_t elements = (rows + panels_.rows_an_element - 1) / panels_.rows_an_element;
  return (elements + loops_.narrow - 1) / loops_.narrow * loops_.narrow;
}

void SemiringProduct::ChooseBlocks() {
  int64_t& rows = block_[kRows];
  int64_t& columns = block_[kColumns];
  int64_t& terms = block_[kSummed];
  const auto cut_columns = [&](int64_t parts) {
    columns = RoundUp(CeilDiv(std::max<int64_t>(1, sizes_[kColumns]), parts), kColumnsOfTiles);
  };
  int64_t parts = CeilDiv(std::max<int64_t>(1, sizes_[kColumns]), kMostColumns);
  cut_columns(parts);
  rows = std::clamp<int64_t>(sizes_[kRows], 1, kMostRows * panels_.rows_an_element);
  terms = std::clamp<int64_t>(sizes_[kSummed], 1, kMostTerms);
  const double products = static_cast<double>(sizes_[kRows]) * static_cast<double>(sizes_[kColumns]) *
                          static_cast<double>(sizes_[kSummed]) * static_cast<double>(sizes_[kBatch]);
  const auto count = [&] { return NumBlocks(kRows) * NumBlocks(kColumns) * sizes_[kBatch]; };
  const int64_t threads = products > kOneThread ? std::clamp<int64_t>(MachineCores(), 1, 16) : 1;
  const int64_t enough = threads == 1 ? 1 : kBlocksAThread * threads;
  while (count() < enough && columns >= 2 * kFewColumns) cut_columns(++parts);
  const int64_t least_rows = loops_.wide * panels_.rows_an_element;
  while (count() < enough / 2 && rows > 2 * least_rows) rows = RoundUp(rows / 2, least_rows);
  while (count() < enough / 2 && columns >= 2 * kLeastColumns) cut_columns(++parts);
  num_blocks_ = count();
  slots_ = std::min(threads, std::max<int64_t>(1, num_blocks_));
  const auto bytes = [&] {
    return RoundUp(PackedRows(rows) * terms * panels_.packed_bytes, 64) +
           RoundUp(terms * columns * panels_.packed_bytes, 64) +
           RoundUp(PackedRows(rows) * columns * panels_.packed_bytes, 64) +
           RoundUp(2 * (rows + columns + terms) * static_cast<int64_t>(sizeof(int64_t)), 64);
  };
  while (bytes() * slots_ > kMaxWorkspaceBytes && terms > 64) terms /= 2;
  while (bytes() * slots_ > kMaxWorkspaceBytes && columns > kLeastColumns) cut_columns(++parts);
  while (bytes() * slots_ > kMaxWorkspaceBytes && slots_ > 1) --slots_;
  slot_bytes_ = bytes();
  num_blocks_ = count();
}

void SemiringProduct::Run(const void* lhs, const void* rhs, void* result, void* workspace, ThreadPool& pool) const {
  if (strips_.has_value()) return strips_->Run(lhs, rhs, result, workspace, pool);
  const char* a = static_cast<const char*>(lhs);
  const char* b = static_cast<const char*>(rhs);
  if (swaps_) std::swap(a, b);
  std::atomic<int64_t> next{0};
  const auto run = [&](int64_t number) {
    Slot slot = MakeSlot(static_cast<char*>(workspace) + number * slot_bytes_);
    while (!StopRequested()) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= num_blocks_) return;
      RunBlock(index, a, b, static_cast<char*>(result), slot);
    }
  };
  if (slots_ == 1) return run(0);
  pool.ParallelFor(slots_, run);
}

std::string SemiringProduct::Describe() const {
  const absl::string_view name = kAlgebraNames[static_cast<size_t>(algebra_)];
  if (strips_.has_value()) return absl::StrCat(name, ", ", strips_->way());
  if (panels_.rows_an_element > 1) return absl::StrCat(name, ", ", panels_.rows_an_element, " rows a word");
  return absl::StrCat(name, ", packed blocks of ", block_[kRows], "x", block_[kColumns], "x", block_[kSummed]);
}

SemiringProduct::Slot SemiringProduct::MakeSlot(char* memory) const {
  Slot slot;
  const auto take = [&memory](int64_t bytes) { return std::exchange(memory, memory + RoundUp(bytes, 64)); };
  slot.lhs = take(PackedRows(block_[kRows]) * block_[kSummed] * panels_.packed_bytes);
  slot.rhs = take(block_[kSummed] * block_[kColumns] * panels_.packed_bytes);
  slot.sums = take(PackedRows(block_[kRows]) * block_[kColumns] * panels_.packed_bytes);
  int64_t* places = reinterpret_cast<int64_t*>(memory);
  for (int64_t*& of_rows : slot.rows) of_rows = std::exchange(places, places + block_[kRows]);
  for (int64_t*& of_columns : slot.columns) of_columns = std::exchange(places, places + block_[kColumns]);
  for (int64_t*& of_terms : slot.terms) of_terms = std::exchange(places, places + block_[kSummed]);
  return slot;
}

// A block of the result. Blocks of the same rows follow each other: if all terms are one part, rows stay packed.
void SemiringProduct::RunBlock(int64_t index, const char* lhs, const char* rhs, char* result, Slot& slot) const {
  const int64_t row_blocks = NumBlocks(kRows), column_blocks = NumBlocks(kColumns);
  const int64_t column = index % column_blocks * block_[kColumns];
  const int64_t of_rows = index / column_blocks;
  const int64_t row = of_rows % row_blocks * block_[kRows];
  const int64_t batch = of_rows / row_blocks;
  lhs += OffsetOf(kLhs, space_.roles[kBatch], batch) * element_bytes_;
  rhs += OffsetOf(kRhs, space_.roles[kBatch], batch) * element_bytes_;
  result += OffsetOf(kDotResult, space_.roles[kBatch], batch) * element_bytes_;
  const int64_t rows = std::min(block_[kRows], sizes_[kRows] - row);
  const int64_t columns = std::min(block_[kColumns], sizes_[kColumns] - column);
  if (slot.packed_rows != of_rows || sizes_[kSummed] > block_[kSummed]) slot.packed_rows = -1;

  WritePlaces(space_.roles[kRows], row, rows, kLhs, kDotResult, slot.rows[0], slot.rows[1]);
  WritePlaces(space_.roles[kColumns], column, columns, kRhs, kDotResult, slot.columns[0], slot.columns[1]);

  const int64_t step = PackedRows(rows);
  panels_.clear(slot.sums, step * columns, algebra_);
  for (int64_t term = 0; term < sizes_[kSummed]; term += block_[kSummed]) {
    if (StopRequested()) return;
    RunTerms(term, std::min(block_[kSummed], sizes_[kSummed] - term), lhs, rhs, slot, rows, columns);
    slot.packed_rows = sizes_[kSummed] <= block_[kSummed] ? of_rows : -1;
  }
  const auto span = [](const int64_t* from, int64_t count) {
    return absl::Span<const int64_t>(from, static_cast<size_t>(count));
  };
  panels_.store(slot.sums, step, {span(slot.rows[1], rows), span(slot.columns[1], columns)}, result);
}

// Adds a part of the terms to the sums of a block.
void SemiringProduct::RunTerms(int64_t term, int64_t terms, const char* lhs, const char* rhs, Slot& slot, int64_t rows,
                               int64_t columns) const {
  const auto span = [](const int64_t* from, int64_t count) {
    return absl::Span<const int64_t>(from, static_cast<size_t>(count));
  };
  const SemiringBlock block = {.a = slot.lhs,
                               .b = slot.rhs,
                               .c = slot.sums,
                               .rows = PackedRows(rows),
                               .columns = columns,
                               .terms = terms,
                               .c_step = PackedRows(rows)};
  const int64_t of_lhs = block.rows * terms, of_rhs = columns * terms;
  const auto pack_lhs = [&] {
    panels_.pack_lhs(lhs, {span(slot.rows[0], rows), span(slot.terms[0], terms)}, {loops_.wide, loops_.narrow},
                     algebra_, slot.lhs);
    slot.has_stand_in = false;
  };
  WritePlaces(space_.roles[kSummed], term, terms, kLhs, kRhs, slot.terms[0], slot.terms[1]);
  if (slot.packed_rows < 0) {
    pack_lhs();
    slot.found = loops_.scan == nullptr ? 0 : loops_.scan(slot.lhs, of_lhs);
  }
  panels_.pack_rhs(rhs, {span(slot.terms[1], terms), span(slot.columns[0], columns)}, slot.rhs);
  if (loops_.scan == nullptr) return loops_.multiply(block);
  const uint32_t a = slot.found, b = loops_.scan(slot.rhs, of_rhs);
  if (loops_.needs_care(a, b)) {
    if (slot.has_stand_in) pack_lhs();
    return loops_.multiply_with_care(block);
  }
  if (loops_.needs_stand_in(a, b)) {
    if (!std::exchange(slot.has_stand_in, true)) loops_.put_stand_in(slot.lhs, of_lhs);
    loops_.put_stand_in(slot.rhs, of_rhs);
  }
  loops_.multiply(block);
}

}  // namespace tensord::cpu
