#include "backends/cpu/tiled_gemm.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "backends/cpu/cache_sizes.h"
#include "backends/cpu/gemm.h"

namespace tensord::cpu {
namespace {

// Of one row: a panel of b stays in the nearest cache. More where nothing but rows of a is packed.
constexpr int64_t kTermBlockBytes = 3 << 10;
constexpr int64_t kOwnRowsTermBlockBytes = 4 << 10;
constexpr int64_t kMinPackedBytes = int64_t{2} << 20;
constexpr int64_t kMaxPackedBytes = int64_t{4} << 20;
constexpr int64_t kTensorsToPacked = 12;
constexpr int64_t kPartBytes = int64_t{256} << 10;  // of what a thread goes through again and again
constexpr double kTaskWork = 1 << 22;               // multiplications
constexpr double kLeastTaskWork = 1 << 17;
constexpr double kProductWork = 1 << 23;  // one thread's share of a batch
constexpr int64_t kParts = 16;
constexpr int64_t kLeastParts = 6;
constexpr int64_t kUnpackedBytes = int64_t{512} << 10;  // of an operand that stays in the second cache as it lies
constexpr int64_t kPanelsTogether = 8;
constexpr int64_t kReads = 8;  // of an operand as it lies
constexpr int64_t kLeastReads = 8;
constexpr int64_t kLargeResultBytes = int64_t{4} << 20;
constexpr int64_t kTransposedRun = 8;
constexpr int64_t kScatteredTerms = 16;
constexpr int64_t kScatteredRunBytes = 64;
constexpr int64_t kScatteredBytes = int64_t{16} << 10;  // of tiles that are copied together

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t multiple) { return CeilDiv(a, multiple) * multiple; }

int64_t EvenPart(int64_t size, int64_t most, int64_t multiple) {
  const int64_t parts = CeilDiv(size, std::max(most / multiple * multiple, multiple));
  return RoundUp(CeilDiv(size, parts), multiple);
}

// Neighbours that are one axis on one side.
DotAxisList MergeOn(DotSide side, const DotAxisList& axes) {
  DotAxisList merged;
  for (const DotAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!merged.empty() && axis.strides[side] == merged.back().strides[side] * merged.back().size) {
      merged.back().size *= axis.size;
    } else {
      merged.push_back({axis.size, {}});
      merged.back().strides[side] = axis.strides[side];
    }
  }
  if (merged.empty()) merged.push_back({1, {0, 0, 0}});
  return merged;
}

DotAxisList SortedBy(DotSide side, DotAxisList axes) {
  std::stable_sort(axes.begin(), axes.end(),
                   [side](const DotAxis& a, const DotAxis& b) { return a.strides[side] < b.strides[side]; });
  return axes;
}

// What an element costs to pack, in a rough scale.
double PackingCost(DotSide side, const DotAxisList& lines, const DotAxisList& terms) {
  const DotAxisList line = MergeOn(side, lines), term = MergeOn(side, terms);
  const double pieces = 4.0 / static_cast<double>(term[0].size);
  if (line[0].strides[side] == 1) return 1 + pieces;
  if (term[0].strides[side] == 1 && term[0].size >= kTransposedRun) return 2 + pieces;
  return 4 + pieces;
}

double PackingCost(const DotSpace& space) {
  const auto of = [&space](DotSide side, DotRole lines) {
    return static_cast<double>(space.Size(lines)) * PackingCost(side, space.roles[lines], space.roles[kSummed]);
  };
  return of(kLhs, kRows) + of(kRhs, kColumns);
}

// Tiles do not go over the end of an axis of the result.
bool HoldsTiles(const DotAxisList& axes, int64_t width) {
  const DotAxisList merged = MergeOn(kDotResult, axes);
  return merged.size() == 1 || merged[0].size % width == 0;
}

// Summed axes may be walked in any order, the same on both sides, and so may columns: the one that is packed best.
DotSpace InOrderOfPacking(const DotSpace& space, const GemmTiles& tiles, const PaddedTensors& padded) {
  DotSpace best = space;
  double least = 0;
  for (bool sorts_columns : {false, true}) {
    for (DotSide side : {kLhs, kRhs}) {
      DotSpace ordered = space;
      if (sorts_columns) ordered.roles[kColumns] = SortedBy(kRhs, space.roles[kColumns]);
      if (sorts_columns && !HoldsTiles(ordered.roles[kColumns], tiles.columns)) continue;
      ordered.roles[kSummed] = SortedBy(side, space.roles[kSummed]);
      const double cost = PackingCost(ordered);
      if (least > 0 && cost >= least) continue;
      least = cost;
      best = std::move(ordered);
    }
    if (!padded[kRhs].axes.empty()) break;
  }
  return best;
}

}  // namespace

// What a box needs to be packed and multiplied.
struct TiledGemm::Box {
  std::array<const char*, 2> matrices;
  std::array<char*, 2> panels;
  char* result = nullptr;
  int64_t row = 0, rows = 0;
  int64_t column = 0, columns = 0;
  int64_t term = 0, terms = 0;
  bool accumulates = false;
};

bool TiledGemm::Suits(const DotSpace& space, DType dtype) { return Suits(space, dtype, {}); }

bool TiledGemm::Suits(const DotSpace& unordered, DType dtype, const PaddedTensors& padded) {
  const GemmTiles tiles = GetGemmTiles(dtype);
  if (tiles.rows == 0) return false;
  const DotSpace space = InOrderOfPacking(unordered, tiles, padded);
  const int64_t m = space.Size(kRows), n = space.Size(kColumns), k = space.Size(kSummed);
  // Vectors, and what is tiny, have loops of their own (Gemm).
  if (m * SizeOf(dtype) < 16 || n < 2 || k < 4 || (m <= kMaxTinyRows && k <= kMaxTinyTerms)) return false;
  const bool is_bound_by_writing = k < 8 && m * n * SizeOf(dtype) >= kLargeResultBytes;
  const bool needs_parts_of_sums = space.Size(kBatch) == 1 && m * n <= 16 * 16 && k >= 8192;
  if (is_bound_by_writing || needs_parts_of_sums) return false;
  // To pack scattered elements pays where each is read often.
  for (DotSide side : {kLhs, kRhs}) {
    const int64_t others = side == kLhs ? n : m;
    const DotAxisList lines = MergeOn(side, space.roles[side == kLhs ? kRows : kColumns]);
    const DotAxisList terms = MergeOn(side, space.roles[kSummed]);
    if ((lines.size() > 1 || terms.size() > 1) && others < kLeastReads) return false;
    if (!padded[side].axes.empty() &&
        !PaddedLines::Suits(side, padded[side], lines, terms, MergeOn(side, space.roles[kBatch]))) {
      return false;
    }
  }
  const DotAxis run = MergeOn(kDotResult, space.roles[kRows])[0];
  if (run.strides[kDotResult] != 1) return false;
  // Where tiles go over the end of an axis of the result they are copied there, which long sums and runs make cheap.
  return (HoldsTiles(space.roles[kRows], tiles.rows) && HoldsTiles(space.roles[kColumns], tiles.columns)) ||
         (k >= kScatteredTerms && run.size * SizeOf(dtype) >= kScatteredRunBytes);
}

TiledGemm::TiledGemm(const DotSpace& unordered, DType dtype, const PaddedTensors& padded)
    : tiles_(GetGemmTiles(dtype)), element_bytes_(SizeOf(dtype)), num_products_(unordered.Size(kBatch)) {
  const DotSpace space = InOrderOfPacking(unordered, tiles_, padded);
  rows_.size = space.Size(kRows);
  columns_.size = space.Size(kColumns);
  terms_.size = space.Size(kSummed);
  result_rows_ = MergeOn(kDotResult, space.roles[kRows]);
  result_columns_ = MergeOn(kDotResult, space.roles[kColumns]);
  for (DotSide side : {kLhs, kRhs}) {
    TiledOperand& operand = operands_[side];
    operand.side = side;
    operand.element_bytes = element_bytes_;
    operand.lines = MergeOn(side, space.roles[side == kLhs ? kRows : kColumns]);
    operand.terms = MergeOn(side, space.roles[kSummed]);
    operand.batch = MergeOn(side, space.roles[kBatch]);
    operand.width = side == kLhs ? tiles_.rows : tiles_.columns;
    if (!padded[side].axes.empty()) {
      operand.padded = PaddedLines(side, padded[side], operand.lines, operand.terms, element_bytes_);
      operand.batch = PaddedLines::Unpadded(side, padded[side], operand.batch);
    }
    const bool is_matrix = operand.lines.size() == 1 && operand.terms.size() == 1;
    // What is small or read a few times is not worth being packed. A tile reads rows of lhs side by side.
    const int64_t others = side == kLhs ? columns_.size : rows_.size;
    const int64_t other_width = side == kLhs ? tiles_.columns : tiles_.rows;
    const bool is_readable = is_matrix && (side == kRhs || operand.lines[0].strides[kLhs] == 1);
    const int64_t bytes = (side == kLhs ? rows_.size : columns_.size) * terms_.size * element_bytes_;
    operand.is_packed =
        !is_readable || operand.padded.is_used() || (others > kReads * other_width && bytes > kUnpackedBytes);
  }
  result_batch_ = MergeOn(kDotResult, space.roles[kBatch]);
  // Columns whose terms lie side by side are read as fast as they lie, and by who packs rows of lhs for itself.
  TiledOperand& rhs = operands_[kRhs];
  if (rhs.is_packed && !rhs.padded.is_used() && rhs.lines.size() == 1 && rhs.terms.size() == 1 &&
      rhs.terms[0].strides[kRhs] == 1 && PacksOwnRows()) {
    rhs.is_packed = false;
  }
  PlanBoxes(padded[kLhs]);
}

bool TiledGemm::PacksOwnRows() const {
  return operands_[kLhs].is_packed && rows_.size >= kLeastParts * 2 * tiles_.rows;
}

int64_t TiledGemm::PackedBytes(DotSide side, int64_t lines) const {
  const TiledOperand& operand = operands_[side];
  if (operand.slide.is_used()) return operand.SlideStep(lines) * NumElements(operand.terms) * element_bytes_;
  return operand.is_packed ? RoundUp(RoundUp(lines, operand.width) * LineBytes(), 64) : 0;
}

// Where a thread packs all terms of its rows, windows that slide along the rows are packed once, not for each term.
void TiledGemm::PlanSlide(const PaddedTensor& padded) {
  TiledOperand& lhs = operands_[kLhs];
  DotAxisList lines = lhs.lines, terms = lhs.terms;
  const TiledOperand::Slide slide = TiledOperand::FindSlide(kLhs, &lines, &terms);
  if (!slide.is_used() || 2 * slide.reach() > rows_.size) return;
  if (lhs.padded.is_used()) {
    if (!PaddedLines::Suits(kLhs, padded, lines, terms, {})) return;
    lhs.padded = PaddedLines(kLhs, padded, lines, terms, element_bytes_);
  }
  lhs.lines = lines;
  lhs.terms = terms;
  lhs.slide = slide;
}

TiledGemm::Method TiledGemm::ChooseMethod(int64_t most) const {
  const double work =
      static_cast<double>(rows_.size) * static_cast<double>(columns_.size) * static_cast<double>(terms_.size);
  const int64_t product_bytes = PackedBytes(kLhs, rows_.size) + PackedBytes(kRhs, columns_.size);
  if (num_products_ > 1 && (work < 2 * kLeastTaskWork || (work <= kProductWork && 4 * product_bytes <= most))) {
    return Method::kOwnProducts;
  }
  if (PacksOwnRows()) return Method::kOwnRows;
  if (operands_[kRhs].is_packed && columns_.size >= kLeastParts * 4 * tiles_.columns &&
      PackedBytes(kLhs, rows_.size) <= most / 2) {
    return Method::kOwnColumns;
  }
  return Method::kShared;
}

void TiledGemm::PlanOwnRows(int64_t most) {
  const TiledOperand& lhs = operands_[kLhs];
  const int64_t panel_bytes = tiles_.rows * LineBytes() / lhs.slide.count;
  const int64_t least_panels = CeilDiv(std::max<int64_t>(1, lhs.slide.reach()), tiles_.rows);
  const int64_t part_bytes = operands_[kRhs].is_packed ? kPartBytes : MachineCacheSizes().l2 / 2;
  const int64_t most_panels = std::max(least_panels, part_bytes / panel_bytes);
  // Parts grow smaller towards the end, so that threads end together [Polychronopoulos and Kuck, Guided
  // self-scheduling, 1987]; few rows make a panel of rhs worth its way into the cache.
  for (int64_t row = 0; row < rows_.size;) {
    const int64_t panels = CeilDiv(rows_.size - row, tiles_.rows);
    row += std::clamp(panels / (2 * slots_), least_panels, most_panels) * tiles_.rows;
    part_ends_.push_back(std::min(row, rows_.size));
  }
  rows_.part = rows_.size;
  slot_bytes_ = PackedBytes(kLhs, part_ends_[0]);
  slots_ = std::min({static_cast<int64_t>(part_ends_.size()), slots_, std::max<int64_t>(2, most / 2 / slot_bytes_)});
  const int64_t rest = std::max(most / 2, most - slots_ * slot_bytes_);
  columns_.part =
      operands_[kRhs].is_packed ? EvenPart(columns_.size, rest / LineBytes(), tiles_.columns) : columns_.size;
}

void TiledGemm::PlanOwnColumns(int64_t most) {
  const int64_t columns =
      std::clamp(columns_.size / kParts, 4 * tiles_.columns, std::max(4 * tiles_.columns, kPartBytes / LineBytes()));
  columns_.part = columns_.size;
  task_columns_ = EvenPart(columns_.size, columns, tiles_.columns);
  slot_bytes_ = PackedBytes(kRhs, task_columns_);
  slots_ = std::min({CeilDiv(columns_.size, task_columns_), slots_, std::max<int64_t>(2, most / 2 / slot_bytes_)});
  rows_.part = rows_.size;
  task_rows_ = rows_.size;
}

void TiledGemm::PlanShared(int64_t most) {
  // Rows are packed again for every box of columns.
  const int64_t most_rows = operands_[kRhs].is_packed ? most / 3 : most;
  const int64_t most_columns = operands_[kLhs].is_packed ? most - most / 3 : most;
  rows_.part = operands_[kLhs].is_packed ? EvenPart(rows_.size, most_rows / LineBytes(), tiles_.rows) : rows_.size;
  columns_.part =
      operands_[kRhs].is_packed ? EvenPart(columns_.size, most_columns / LineBytes(), tiles_.columns) : columns_.size;
  const double rows = static_cast<double>(std::min(rows_.part, rows_.size));
  const double columns = static_cast<double>(std::min(columns_.part, columns_.size));
  const double terms = static_cast<double>(terms_.part);
  const double work = std::clamp(rows * columns * terms / static_cast<double>(kParts), kLeastTaskWork, kTaskWork);
  task_rows_ = EvenPart(std::min(rows_.part, rows_.size), kPartBytes / LineBytes(), tiles_.rows);
  task_columns_ = EvenPart(std::min(columns_.part, columns_.size),
                           static_cast<int64_t>(work / (static_cast<double>(task_rows_) * terms)), tiles_.columns);
}

void TiledGemm::PlanBoxes(const PaddedTensor& padded_lhs) {
  const double work =
      static_cast<double>(rows_.size) * static_cast<double>(columns_.size) * static_cast<double>(terms_.size);
  const int64_t tensors = element_bytes_ * num_products_ *
                          (rows_.size * terms_.size + terms_.size * columns_.size + rows_.size * columns_.size);
  const int64_t most = std::clamp(tensors / kTensorsToPacked, kMinPackedBytes, kMaxPackedBytes);
  const int64_t line_bytes = PacksOwnRows() && !operands_[kRhs].is_packed ? kOwnRowsTermBlockBytes : kTermBlockBytes;
  terms_.part = std::min(EvenPart(terms_.size, line_bytes / element_bytes_, 8), terms_.size);
  runs_on_caller_ = work * static_cast<double>(num_products_) < 2 * kLeastTaskWork;
  slots_ = std::clamp<int64_t>(MachineCores(), 2, 16);
  method_ = ChooseMethod(most);
  switch (method_) {
    case Method::kOwnProducts:
      rows_.part = rows_.size;
      columns_.part = columns_.size;
      places_[kRhs] = PackedBytes(kLhs, rows_.size);
      slot_bytes_ = places_[kRhs] + PackedBytes(kRhs, columns_.size);
      slots_ = std::min(
          {num_products_, slots_, slot_bytes_ == 0 ? num_products_ : std::max<int64_t>(1, most / slot_bytes_)});
      scratch_bytes_ = slots_ * slot_bytes_;
      return;
    case Method::kOwnRows:
      if (!operands_[kRhs].is_packed && terms_.parts() == 1) PlanSlide(padded_lhs);
      PlanOwnRows(most);
      places_[kLhs] = PackedBytes(kRhs, std::min(columns_.part, columns_.size));
      scratch_bytes_ = places_[kLhs] + slots_ * slot_bytes_;
      return;
    case Method::kOwnColumns:
      PlanOwnColumns(most);
      places_[kRhs] = PackedBytes(kLhs, rows_.size);
      scratch_bytes_ = places_[kRhs] + slots_ * slot_bytes_;
      return;
    case Method::kShared:
      PlanShared(most);
      places_[kRhs] = PackedBytes(kLhs, std::min(rows_.part, rows_.size));
      scratch_bytes_ = places_[kRhs] + PackedBytes(kRhs, std::min(columns_.part, columns_.size));
  }
}

int64_t TiledGemm::BatchOffset(DotSide side, int64_t index) const {
  return OffsetOf(side, side == kDotResult ? result_batch_ : operands_[side].batch, index) * element_bytes_;
}

// Several panels.
void TiledGemm::PackPanels(DotSide side, const Box& box, int64_t group) const {
  const TiledOperand& operand = operands_[side];
  const int64_t first = side == kLhs ? box.row : box.column;
  const int64_t count = side == kLhs ? box.rows : box.columns;
  const int64_t most = operand.width * kPanelsTogether;
  const int64_t end = std::min(count, (group + 1) * most);
  const DotAxis& fast = operand.lines[0];
  for (int64_t line = group * most; line < end;) {
    int64_t lines = std::min(end - line, operand.width);
    if (fast.strides[side] == 1 && !operand.padded.is_used()) {
      // As many whole panels as lie side by side, and the last one.
      const int64_t run = std::min(end - line, fast.size - (first + line) % fast.size);
      lines = run == end - line ? run : std::max(lines, run / operand.width * operand.width);
    }
    operand.Pack(tiles_, box.matrices[side], first + line, lines, box.term, box.terms,
                 box.panels[side] + line * box.terms * element_bytes_);
    line += lines;
  }
}

int64_t TiledGemm::PanelGroups(DotSide side, const Box& box) const {
  const TiledOperand& operand = operands_[side];
  return operand.is_packed ? CeilDiv(side == kLhs ? box.rows : box.columns, operand.width * kPanelsTogether) : 0;
}

void TiledGemm::PackAll(DotSide side, const Box& box) const {
  const int64_t groups = PanelGroups(side, box);
  for (int64_t group = 0; group < groups; ++group) PackPanels(side, box, group);
}

// Rows and columns are those of the box. In pieces whose rows lie side by side in the result and whose columns at one
// step; they begin with tiles. Tiles that go over the end of an axis are pieces by themselves, and scattered.
void TiledGemm::Multiply(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  const auto length = [](const DotAxisList& axes, int64_t first, int64_t most, int64_t width) {
    const int64_t rest = axes.size() == 1 ? most : std::min(most, axes[0].size - first % axes[0].size);
    return rest == most ? rest : rest / width * width;
  };
  for (int64_t j = 0; j < columns;) {
    const int64_t whole_columns = length(result_columns_, box.column + column + j, columns - j, tiles_.columns);
    const int64_t n = whole_columns > 0 ? whole_columns : std::min(columns - j, tiles_.columns);
    for (int64_t i = 0; i < rows;) {
      const int64_t whole_rows = length(result_rows_, box.row + row + i, rows - i, tiles_.rows);
      const int64_t m = whole_columns == 0 ? rows - i : whole_rows > 0 ? whole_rows : std::min(rows - i, tiles_.rows);
      if (whole_columns > 0 && whole_rows > 0) {
        MultiplyPiece(box, row + i, m, column + j, n);
      } else {
        MultiplyScattered(box, row + i, m, column + j, n);
      }
      i += m;
    }
    j += n;
  }
}

// By blocks that fit the nearest cache, from where rows are copied to the result in the runs that they are there.
void TiledGemm::MultiplyScattered(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  alignas(64) char block[kScatteredBytes];
  const int64_t most = kScatteredBytes / (tiles_.columns * element_bytes_) / tiles_.rows * tiles_.rows;
  const bool accumulates = box.accumulates || box.term > 0;
  for (int64_t j = 0; j < columns; j += tiles_.columns) {
    const int64_t n = std::min(columns - j, tiles_.columns);
    for (int64_t i = 0; i < rows; i += most) {
      const int64_t m = std::min(rows - i, most);
      const auto for_each_run = [&](const auto& copy) {
        for (int64_t line = 0; line < n; ++line) {
          char* const to =
              box.result + OffsetOf(kDotResult, result_columns_, box.column + column + j + line) * element_bytes_;
          for (int64_t done = 0; done < m;) {
            const int64_t first = box.row + row + i + done;
            const int64_t size = result_rows_[0].size;
            const int64_t run = result_rows_.size() == 1 ? m : std::min(m - done, size - first % size);
            copy(to + OffsetOf(kDotResult, result_rows_, first) * element_bytes_,
                 block + (line * m + done) * element_bytes_, static_cast<size_t>(run * element_bytes_));
            done += run;
          }
        }
      };
      if (accumulates) for_each_run([](char* result, char* own, size_t bytes) { std::memcpy(own, result, bytes); });
      MultiplyPiece(box, row + i, m, column + j, n, block);
      for_each_run([](char* result, char* own, size_t bytes) { std::memcpy(result, own, bytes); });
    }
  }
}

void TiledGemm::MultiplyPiece(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns,
                              char* scattered) const {
  TiledBlock block;
  block.m = rows;
  block.n = columns;
  block.k = box.terms;
  const TiledOperand& lhs = operands_[kLhs];
  block.packs_a = lhs.is_packed && !lhs.slide.is_used();
  block.packs_b = operands_[kRhs].is_packed;
  const auto place = [&](DotSide side, int64_t first_in_box, int64_t first_line) -> const char* {
    const TiledOperand& operand = operands_[side];
    if (operand.slide.is_used()) return box.panels[side] + first_in_box * element_bytes_;
    if (operand.is_packed) return box.panels[side] + first_in_box * box.terms * element_bytes_;
    return box.matrices[side] +
           ((first_line + first_in_box) * operand.lines[0].strides[side] + box.term * operand.terms[0].strides[side]) *
               element_bytes_;
  };
  block.a = place(kLhs, row, box.row);
  block.b = place(kRhs, column, box.column);
  block.a_term_step = block.packs_a ? tiles_.rows : lhs.terms[0].strides[kLhs];
  block.a_panel_step = block.packs_a ? tiles_.rows * box.terms : tiles_.rows;
  if (lhs.slide.is_used()) {
    block.a_term_step = lhs.SlideStep(box.rows);
    block.a_panel_step = tiles_.rows;
    block.run_terms = box.terms / lhs.slide.count;
    block.a_run_step = lhs.slide.lines;
  }
  block.b_term_step = block.packs_b ? tiles_.columns : operands_[kRhs].terms[0].strides[kRhs];
  block.b_column_step = block.packs_b ? 1 : operands_[kRhs].lines[0].strides[kRhs];
  block.b_panel_step = tiles_.columns * (block.packs_b ? box.terms : block.b_column_step);
  block.c = box.result + (OffsetOf(kDotResult, result_rows_, box.row + row) +
                          OffsetOf(kDotResult, result_columns_, box.column + column)) *
                             element_bytes_;
  block.c_column_step = result_columns_[0].strides[kDotResult];
  if (scattered != nullptr) {
    block.c = scattered;
    block.c_column_step = rows;
  }
  block.accumulates = box.accumulates || box.term > 0;
  tiles_.multiply(block);
}

void TiledGemm::MoveToProduct(int64_t index, Box* box) const {
  for (DotSide side : {kLhs, kRhs}) box->matrices[side] += BatchOffset(side, index);
  box->result += BatchOffset(kDotResult, index);
}

template <typename Task>
void TiledGemm::RunTasks(int64_t tasks, ThreadPool& pool, Task task) const {
  if (!runs_on_caller_ && tasks > 1) return pool.ParallelFor(tasks, task);
  for (int64_t i = 0; i < tasks; ++i) task(i);
}

// Calls task(index, slot): no two at a time have the same slot, and a thread that goes on keeps its own.
template <typename Task>
void TiledGemm::RunInSlots(int64_t tasks, ThreadPool& pool, Task task) const {
  std::atomic<int64_t> next{0};
  RunTasks(std::min(slots_, tasks), pool, [&](int64_t slot) {
    while (true) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= tasks) return;
      task(index, slot);
    }
  });
}

void TiledGemm::MoveToTerms(int64_t index, Box* box) const {
  box->term = index * terms_.part;
  box->terms = terms_.Length(index);
}

// Of boxes of terms that follow each other.
void TiledGemm::RunOwnRows(const Box& box, int64_t first, int64_t count, ThreadPool& pool) const {
  RunInSlots(static_cast<int64_t>(part_ends_.size()), pool, [&](int64_t index, int64_t slot) {
    Box part = box;
    part.row = index == 0 ? 0 : part_ends_[static_cast<size_t>(index - 1)];
    part.rows = part_ends_[static_cast<size_t>(index)] - part.row;
    part.panels[kLhs] += slot * slot_bytes_;
    for (int64_t p = first; p < first + count; ++p) {
      MoveToTerms(p, &part);
      if (operands_[kLhs].slide.is_used()) {
        operands_[kLhs].PackSlide(tiles_, part.matrices[kLhs], part.row, part.rows, part.panels[kLhs]);
      } else {
        PackAll(kLhs, part);
      }
      Multiply(part, 0, part.rows, 0, part.columns);
    }
  });
}

void TiledGemm::RunOwnColumns(const Box& box, ThreadPool& pool) const {
  RunInSlots(CeilDiv(box.columns, task_columns_), pool, [&](int64_t index, int64_t slot) {
    Box part = box;
    part.column += index * task_columns_;
    part.columns = std::min(task_columns_, box.columns - index * task_columns_);
    part.panels[kRhs] += slot * slot_bytes_;
    PackAll(kRhs, part);
    Multiply(part, 0, part.rows, 0, part.columns);
  });
}

// Tasks with the same panels of lhs follow each other, so that a thread finds them in its cache.
void TiledGemm::RunShared(const Box& box, ThreadPool& pool) const {
  const int64_t row_tasks = CeilDiv(box.rows, task_rows_), column_tasks = CeilDiv(box.columns, task_columns_);
  RunTasks(row_tasks * column_tasks, pool, [&](int64_t task) {
    const int64_t row = task / column_tasks * task_rows_, column = task % column_tasks * task_columns_;
    Multiply(box, row, std::min(task_rows_, box.rows - row), column, std::min(task_columns_, box.columns - column));
  });
}

// Columns, terms, rows: panels of rhs are packed once, and those of lhs once for every box of columns.
void TiledGemm::RunBoxes(Box box, ThreadPool& pool) const {
  for (int64_t j = 0; j < columns_.parts(); ++j) {
    box.column = j * columns_.part;
    box.columns = columns_.Length(j);
    if (method_ == Method::kOwnRows && !operands_[kRhs].is_packed) {
      RunOwnRows(box, 0, terms_.parts(), pool);
      continue;
    }
    for (int64_t p = 0; p < terms_.parts(); ++p) {
      MoveToTerms(p, &box);
      for (int64_t i = 0; i < rows_.parts(); ++i) {
        box.row = i * rows_.part;
        box.rows = rows_.Length(i);
        const int64_t lhs_groups = method_ == Method::kOwnRows ? 0 : PanelGroups(kLhs, box);
        const int64_t rhs_groups = method_ == Method::kOwnColumns || i > 0 ? 0 : PanelGroups(kRhs, box);
        RunTasks(lhs_groups + rhs_groups, pool, [&](int64_t group) {
          if (group < lhs_groups) return PackPanels(kLhs, box, group);
          PackPanels(kRhs, box, group - lhs_groups);
        });
        switch (method_) {
          case Method::kOwnRows:
            RunOwnRows(box, p, 1, pool);
            break;
          case Method::kOwnColumns:
            RunOwnColumns(box, pool);
            break;
          default:
            RunShared(box, pool);
        }
      }
    }
  }
}

// A whole product, by this thread.
void TiledGemm::RunProduct(Box box) const {
  box.rows = rows_.size;
  box.columns = columns_.size;
  for (int64_t p = 0; p < terms_.parts(); ++p) {
    MoveToTerms(p, &box);
    PackAll(kLhs, box);
    PackAll(kRhs, box);
    Multiply(box, 0, box.rows, 0, box.columns);
  }
}

void TiledGemm::Run(const char* lhs, const char* rhs, char* result, char* scratch, bool accumulates,
                    ThreadPool& pool) const {
  Box box;
  box.matrices = {lhs, rhs};
  box.panels = {scratch + places_[kLhs], scratch + places_[kRhs]};
  box.result = result;
  box.accumulates = accumulates;
  if (method_ == Method::kOwnProducts) {
    return RunInSlots(num_products_, pool, [&](int64_t product, int64_t slot) {
      Box own = box;
      MoveToProduct(product, &own);
      for (char*& panels : own.panels) panels += slot * slot_bytes_;
      RunProduct(own);
    });
  }
  for (int64_t i = 0; i < num_products_; ++i) {
    Box product = box;
    MoveToProduct(i, &product);
    RunBoxes(product, pool);
  }
}

}  // namespace tensord::cpu
