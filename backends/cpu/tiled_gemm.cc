#include "backends/cpu/tiled_gemm.h"

#include <algorithm>

namespace tensord::cpu {
namespace {

constexpr int64_t kMaxPanelWidth = 64;
constexpr int64_t kTermBlockBytes = 3 << 10;  // of one row: a panel of b stays in the nearest cache
constexpr int64_t kMinPackedBytes = int64_t{1} << 20;
constexpr int64_t kMaxPackedBytes = int64_t{4} << 20;
constexpr int64_t kTensorsToPacked = 12;
constexpr int64_t kTaskBytes = int64_t{256} << 10;  // of the panels of a that a task goes through for each panel of b
constexpr double kTaskWork = 1 << 20;               // multiplications
constexpr double kLeastTaskWork = 1 << 17;
constexpr int64_t kTasks = 8;
constexpr int64_t kTransposedRun = 8;

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

// Summed axes may be walked in any order, the same on both sides.
DotAxisList OrderOfTerms(const DotSpace& space) {
  const DotAxisList& axes = space.roles[kSummed];
  const double lhs_size = static_cast<double>(space.Size(kRows)), rhs_size = static_cast<double>(space.Size(kColumns));
  const auto cost = [&](const DotAxisList& order) {
    return lhs_size * PackingCost(kLhs, space.roles[kRows], order) +
           rhs_size * PackingCost(kRhs, space.roles[kColumns], order);
  };
  const DotAxisList by_lhs = SortedBy(kLhs, axes), by_rhs = SortedBy(kRhs, axes);
  return cost(by_rhs) < cost(by_lhs) ? by_rhs : by_lhs;
}

// Where the element of a flat index lies.
int64_t OffsetOf(DotSide side, const DotAxisList& axes, int64_t index) {
  int64_t offset = 0;
  for (const DotAxis& axis : axes) {
    offset += index % axis.size * axis.strides[side];
    index /= axis.size;
  }
  return offset;
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

bool TiledGemm::Suits(const DotSpace& space, DType dtype) {
  const GemmTiles tiles = GetGemmTiles(dtype);
  if (tiles.rows == 0) return false;
  const int64_t m = space.Size(kRows), n = space.Size(kColumns), k = space.Size(kSummed);
  if (m < 16 || n < 4 || k < 4 || m * n * k < 16 * 16 * 16) return false;
  const bool needs_parts_of_sums = space.Size(kBatch) == 1 && m * n <= 64 * 64 && k >= 8192;
  if (needs_parts_of_sums) return false;
  const DotAxisList rows = MergeOn(kDotResult, space.roles[kRows]);
  const DotAxisList columns = MergeOn(kDotResult, space.roles[kColumns]);
  return rows.size() == 1 && rows[0].strides[kDotResult] == 1 && columns.size() == 1;
}

TiledGemm::TiledGemm(const DotSpace& space, DType dtype)
    : tiles_(GetGemmTiles(dtype)), element_bytes_(SizeOf(dtype)), num_products_(space.Size(kBatch)) {
  rows_.size = space.Size(kRows);
  columns_.size = space.Size(kColumns);
  terms_.size = space.Size(kSummed);
  c_column_step_ = MergeOn(kDotResult, space.roles[kColumns])[0].strides[kDotResult];
  const DotAxisList terms = OrderOfTerms(space);
  for (DotSide side : {kLhs, kRhs}) {
    Operand& operand = operands_[side];
    operand.lines = MergeOn(side, space.roles[side == kLhs ? kRows : kColumns]);
    operand.terms = MergeOn(side, terms);
    operand.batch = MergeOn(side, space.roles[kBatch]);
    operand.width = side == kLhs ? tiles_.rows : tiles_.columns;
    const bool is_matrix = operand.lines.size() == 1 && operand.terms.size() == 1;
    // Read once or twice, an operand is not worth being packed. A tile reads rows of a side by side.
    const int64_t others = side == kLhs ? columns_.size : rows_.size;
    const int64_t other_width = side == kLhs ? tiles_.columns : tiles_.rows;
    const bool is_readable = is_matrix && (side == kRhs || operand.lines[0].strides[kLhs] == 1);
    operand.is_packed = !is_readable || others > 4 * other_width;
  }
  result_batch_ = MergeOn(kDotResult, space.roles[kBatch]);
  PlanBoxes();
}

int64_t TiledGemm::PackedBytes(DotSide side, int64_t lines, int64_t terms) const {
  const Operand& operand = operands_[side];
  return operand.is_packed ? RoundUp(RoundUp(lines, operand.width) * terms * element_bytes_, 64) : 0;
}

void TiledGemm::PlanBoxes() {
  const double work =
      static_cast<double>(rows_.size) * static_cast<double>(columns_.size) * static_cast<double>(terms_.size);
  const int64_t tensors = element_bytes_ * num_products_ *
                          (rows_.size * terms_.size + terms_.size * columns_.size + rows_.size * columns_.size);
  const int64_t most = std::clamp(tensors / kTensorsToPacked, kMinPackedBytes, kMaxPackedBytes);
  terms_.part = EvenPart(terms_.size, kTermBlockBytes / element_bytes_, 8);
  terms_.part = std::min(terms_.part, terms_.size);
  const bool packs_both = operands_[kLhs].is_packed && operands_[kRhs].is_packed;
  const int64_t most_lines = most / (packs_both ? 2 : 1) / (terms_.part * element_bytes_);
  rows_.part = operands_[kLhs].is_packed ? EvenPart(rows_.size, most_lines, tiles_.rows) : rows_.size;
  columns_.part = operands_[kRhs].is_packed ? EvenPart(columns_.size, most_lines, tiles_.columns) : columns_.size;
  const int64_t lhs_bytes = PackedBytes(kLhs, std::min(rows_.part, rows_.size), terms_.part);
  const int64_t rhs_bytes = PackedBytes(kRhs, std::min(columns_.part, columns_.size), terms_.part);
  rhs_place_ = lhs_bytes;
  scratch_of_product_ = lhs_bytes + rhs_bytes;
  scratch_bytes_ = scratch_of_product_;

  // Tasks of a box.
  const double box_columns = static_cast<double>(std::min(columns_.part, columns_.size));
  const double box_rows = static_cast<double>(std::min(rows_.part, rows_.size));
  const double box_terms = static_cast<double>(terms_.part);
  const double task_work =
      std::clamp(box_rows * box_columns * box_terms / static_cast<double>(kTasks), kLeastTaskWork, kTaskWork);
  task_rows_ = EvenPart(std::min(rows_.part, rows_.size), kTaskBytes / (terms_.part * element_bytes_), tiles_.rows);
  task_columns_ =
      EvenPart(std::min(columns_.part, columns_.size),
               static_cast<int64_t>(task_work / (static_cast<double>(task_rows_) * box_terms)), tiles_.columns);
  runs_on_caller_ = work * static_cast<double>(num_products_) < 2 * kLeastTaskWork;

  const bool is_one_box = rows_.parts() == 1 && columns_.parts() == 1;
  if (is_one_box && num_products_ > 1 && work <= 8 * kTaskWork) {
    const int64_t fit = scratch_of_product_ == 0 ? num_products_ : std::max<int64_t>(1, most / scratch_of_product_);
    if (fit >= 4 || work < 2 * kLeastTaskWork) {
      products_together_ = std::min(num_products_, fit);
      scratch_bytes_ = products_together_ * scratch_of_product_;
    }
  }
}

int64_t TiledGemm::BatchOffset(DotSide side, int64_t index) const {
  return OffsetOf(side, side == kDotResult ? result_batch_ : operands_[side].batch, index) * element_bytes_;
}

void TiledGemm::PackPanel(DotSide side, const char* matrix, int64_t first_line, int64_t lines, int64_t first_term,
                          int64_t terms, char* panel) const {
  const Operand& operand = operands_[side];
  int64_t offsets[kMaxPanelWidth];
  PanelPiece piece;
  piece.offsets = offsets;
  piece.lines = lines;
  piece.width = operand.width;
  const DotAxis& fast_line = operand.lines[0];
  for (int64_t i = 0; i < lines;) {
    int64_t offset = OffsetOf(side, operand.lines, first_line + i);
    const int64_t count = std::min(lines - i, fast_line.size - (first_line + i) % fast_line.size);
    piece.runs += fast_line.strides[side] == 1 ? 1 : count;
    for (int64_t end = i + count; i < end; ++i) {
      offsets[i] = offset;
      offset += fast_line.strides[side];
    }
  }
  const DotAxis& fast_term = operand.terms[0];
  piece.term_stride = fast_term.strides[side];
  for (int64_t term = first_term; term < first_term + terms; term += piece.terms) {
    piece.terms = std::min(first_term + terms - term, fast_term.size - term % fast_term.size);
    piece.from = matrix + OffsetOf(side, operand.terms, term) * element_bytes_;
    tiles_.pack(piece, panel);
    panel += piece.terms * operand.width * element_bytes_;
  }
}

void TiledGemm::PackBox(DotSide side, const Box& box, int64_t panel) const {
  const int64_t width = operands_[side].width;
  const int64_t first = side == kLhs ? box.row : box.column;
  const int64_t count = side == kLhs ? box.rows : box.columns;
  PackPanel(side, box.matrices[side], first + panel * width, std::min(width, count - panel * width), box.term,
            box.terms, box.panels[side] + panel * width * box.terms * element_bytes_);
}

// Rows and columns are those of the box.
void TiledGemm::Multiply(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  TiledBlock block;
  block.m = rows;
  block.n = columns;
  block.k = box.terms;
  block.packs_a = operands_[kLhs].is_packed;
  block.packs_b = operands_[kRhs].is_packed;
  const auto place = [&](DotSide side, int64_t first_in_box, int64_t first_line) -> const char* {
    const Operand& operand = operands_[side];
    if (operand.is_packed) return box.panels[side] + first_in_box * box.terms * element_bytes_;
    return box.matrices[side] +
           ((first_line + first_in_box) * operand.lines[0].strides[side] + box.term * operand.terms[0].strides[side]) *
               element_bytes_;
  };
  block.a = place(kLhs, row, box.row);
  block.b = place(kRhs, column, box.column);
  block.a_term_step = block.packs_a ? tiles_.rows : operands_[kLhs].terms[0].strides[kLhs];
  block.a_panel_step = block.packs_a ? tiles_.rows * box.terms : tiles_.rows;
  block.b_term_step = block.packs_b ? tiles_.columns : operands_[kRhs].terms[0].strides[kRhs];
  block.b_column_step = block.packs_b ? 1 : operands_[kRhs].lines[0].strides[kRhs];
  block.b_panel_step = tiles_.columns * (block.packs_b ? box.terms : block.b_column_step);
  block.c = box.result + (box.row + row + (box.column + column) * c_column_step_) * element_bytes_;
  block.c_column_step = c_column_step_;
  block.accumulates = box.accumulates || box.term > 0;
  tiles_.multiply(block);
}

// Columns, terms, rows: panels of rhs are packed once, and those of lhs once for every box of columns.
void TiledGemm::RunBoxes(Box box, int64_t batch, ThreadPool& pool) const {
  box.matrices[kLhs] += BatchOffset(kLhs, batch);
  box.matrices[kRhs] += BatchOffset(kRhs, batch);
  box.result += BatchOffset(kDotResult, batch);
  const auto run = [&](int64_t tasks, auto task) {
    if (!runs_on_caller_ && tasks > 1) return pool.ParallelFor(tasks, task);
    for (int64_t i = 0; i < tasks; ++i) task(i);
  };
  for (int64_t j = 0; j < columns_.parts(); ++j) {
    box.column = j * columns_.part;
    box.columns = columns_.Length(j);
    for (int64_t p = 0; p < terms_.parts(); ++p) {
      box.term = p * terms_.part;
      box.terms = terms_.Length(p);
      for (int64_t i = 0; i < rows_.parts(); ++i) {
        box.row = i * rows_.part;
        box.rows = rows_.Length(i);
        const int64_t lhs_panels = operands_[kLhs].is_packed ? CeilDiv(box.rows, tiles_.rows) : 0;
        const int64_t rhs_panels = operands_[kRhs].is_packed && i == 0 ? CeilDiv(box.columns, tiles_.columns) : 0;
        run(lhs_panels + rhs_panels, [&](int64_t panel) {
          if (panel < lhs_panels) return PackBox(kLhs, box, panel);
          PackBox(kRhs, box, panel - lhs_panels);
        });
        const int64_t row_tasks = CeilDiv(box.rows, task_rows_);
        run(row_tasks * CeilDiv(box.columns, task_columns_), [&](int64_t task) {
          const int64_t row = task % row_tasks * task_rows_, column = task / row_tasks * task_columns_;
          Multiply(box, row, std::min(task_rows_, box.rows - row), column,
                   std::min(task_columns_, box.columns - column));
        });
      }
    }
  }
}

// A whole product, by this thread.
void TiledGemm::RunProduct(Box box) const {
  box.rows = rows_.size;
  box.columns = columns_.size;
  for (int64_t p = 0; p < terms_.parts(); ++p) {
    box.term = p * terms_.part;
    box.terms = terms_.Length(p);
    for (DotSide side : {kLhs, kRhs}) {
      const int64_t lines = side == kLhs ? box.rows : box.columns;
      const int64_t panels = operands_[side].is_packed ? CeilDiv(lines, operands_[side].width) : 0;
      for (int64_t panel = 0; panel < panels; ++panel) PackBox(side, box, panel);
    }
    Multiply(box, 0, box.rows, 0, box.columns);
  }
}

void TiledGemm::Run(const char* lhs, const char* rhs, char* result, char* scratch, bool accumulates,
                    ThreadPool& pool) const {
  Box box;
  box.matrices = {lhs, rhs};
  box.panels = {scratch, scratch + rhs_place_};
  box.result = result;
  box.accumulates = accumulates;
  if (products_together_ == 0) {
    for (int64_t i = 0; i < num_products_; ++i) RunBoxes(box, i, pool);
    return;
  }
  const auto run = [&](int64_t first, int64_t slot) {
    Box own = box;
    for (DotSide side : {kLhs, kRhs}) {
      own.matrices[side] += BatchOffset(side, first + slot);
      own.panels[side] += slot * scratch_of_product_;
    }
    own.result += BatchOffset(kDotResult, first + slot);
    RunProduct(own);
  };
  for (int64_t first = 0; first < num_products_; first += products_together_) {
    const int64_t count = std::min(products_together_, num_products_ - first);
    if (runs_on_caller_) {
      for (int64_t slot = 0; slot < count; ++slot) run(first, slot);
    } else {
      pool.ParallelFor(count, [&](int64_t slot) { run(first, slot); });
    }
  }
}

}  // namespace tensord::cpu
