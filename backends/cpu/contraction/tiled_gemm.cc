#include "backends/cpu/contraction/tiled_gemm.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "backends/cpu/math/half_conversion.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kPanelsTogether = 8;  // that are packed line by line: memory goes by in runs of a KiB
constexpr int64_t kWidenedTogether = int64_t{16} << 10;  // elements of a small matrix
constexpr int64_t kScatteredBytes = int64_t{16} << 10;   // of tiles that are copied together
// Multiplications of a block between two looks whether the run is still wanted: some milliseconds.
constexpr int64_t kMostBlockWork = int64_t{1} << 26;
constexpr int64_t kWriteTerms = 64;  // that an element takes as long to write as so many multiplications, at first
constexpr int64_t kResultBlockBytes = int64_t{128} << 10;  // of a result that is finished at once
constexpr int64_t kBlockColumns = 32;                      // of one with very many rows

// Returns the lines of a few whole panels: memory is read in long runs if lines lie side by side.
int64_t LinesTogether(const TiledOperand& operand) {
  return operand.width * kPanelsTogether * SizeOf(operand.panel_dtype) / SizeOf(operand.dtype);
}

}  // namespace

// The inputs and the scratch for packing and multiplying a box.
struct TiledGemm::Box {
  std::array<const char*, 2> matrices;
  FactorAddresses factors;  // of operands that have some, for which matrices are null
  int64_t product = 0;
  std::array<char*, 2> panels;
  char* result = nullptr;
  int64_t first = 0;  // element of the whole result
  int64_t row = 0, rows = 0;
  int64_t column = 0, columns = 0;
  int64_t term = 0, terms = 0;
  bool accumulates = false;
  const GemmEpilogue* epilogue = nullptr;
  int64_t slot = 0;
};

int64_t TiledGemm::BatchOffset(DotSide side, int64_t index) const {
  return OffsetOf(side, side == kDotResult ? result_batch_ : operands_[side].batch, index) * BytesOf(side);
}

// Several panels, or a part of a matrix that is widened.
void TiledGemm::PackPanels(DotSide side, const Box& box, int64_t group) const {
  const TiledOperand& operand = operands_[side];
  if (operand.is_widened) {
    const int64_t element = group * kWidenedTogether;
    const int64_t all = NumElements(operand.lines) * NumElements(operand.terms);
    WidenHalf(operand.dtype, reinterpret_cast<const uint16_t*>(box.matrices[side]) + element,
              reinterpret_cast<float*>(box.panels[side]) + element, std::min(kWidenedTogether, all - element));
    return;
  }
  const int64_t first = side == kLhs ? box.row : box.column;
  const int64_t count = side == kLhs ? box.rows : box.columns;
  const int64_t most = LinesTogether(operand);
  const int64_t end = std::min(count, (group + 1) * most);
  const DotAxis& fast = operand.lines[0];
  for (int64_t line = group * most; line < end;) {
    int64_t lines = std::min(end - line, operand.width);
    if (fast.strides[side] == 1 && !operand.padded.is_used() && !operand.factored.is_used()) {
      // All whole panels that lie side by side, and the last one.
      const int64_t run = std::min(end - line, fast.size - (first + line) % fast.size);
      lines = run == end - line ? run : std::max(lines, run / operand.width * operand.width);
    }
    char* const panels = box.panels[side] + line * box.terms * element_bytes_;
    if (operand.factored.is_used()) {
      operand.factored.Pack(tiles_, box.factors[side], box.product, first + line, lines, box.term, box.terms,
                            {panels, operand.width, operand.width});
    } else {
      operand.Pack(tiles_, box.matrices[side], first + line, lines, box.term, box.terms, panels);
    }
    line += lines;
  }
}

int64_t TiledGemm::PanelGroups(DotSide side, const Box& box) const {
  const TiledOperand& operand = operands_[side];
  if (operand.is_widened) {
    return CeilDiv(NumElements(operand.lines) * NumElements(operand.terms), kWidenedTogether);
  }
  return operand.is_packed ? CeilDiv(side == kLhs ? box.rows : box.columns, LinesTogether(operand)) : 0;
}

void TiledGemm::PackAll(DotSide side, const Box& box) const {
  const int64_t groups = PanelGroups(side, box);
  for (int64_t group = 0; group < groups; ++group) PackPanels(side, box, group);
}

// Multiplies rows and columns of the box in pieces. The rows of a piece lie side by side in the result, and its columns
// at one step; a piece begins with a tile. Tiles across the end of an axis are pieces by themselves, and scattered.
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

// Multiplies by blocks that fit the nearest cache. From there rows are copied to the result in its own runs.
void TiledGemm::MultiplyScattered(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  alignas(64) char block[kScatteredBytes];
  const int64_t most = kScatteredBytes / (tiles_.columns * element_bytes_) / tiles_.rows * tiles_.rows;
  const bool accumulates = box.accumulates || box.term > 0;
  for (int64_t j = 0; j < columns; j += tiles_.columns) {
    const int64_t n = std::min(columns - j, tiles_.columns);
    for (int64_t i = 0; i < rows && !StopRequested(); i += most) {
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
      MultiplyBlock(box, row + i, m, column + j, n, block);
      for_each_run([](char* result, char* own, size_t bytes) { std::memcpy(result, own, bytes); });
    }
  }
}

int64_t TiledGemm::block_bytes() const {
  return std::min(kResultBlockBytes, RoundUp(rows_.size * columns_.size * element_bytes_, 64));
}

// Multiplies a piece. If an epilogue follows, works by blocks that stay in the cache until they are finished.
void TiledGemm::MultiplyPiece(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  if (box.epilogue == nullptr || box.term + box.terms < terms_.size) {
    const int64_t most =
        RoundUp(std::max<int64_t>(1, kMostBlockWork / (std::max<int64_t>(1, rows) * std::max(kWriteTerms, box.terms))),
                tiles_.columns);
    for (int64_t j = 0; j < columns; j += most) {
      if (j > 0 && StopRequested()) return;
      MultiplyBlock(box, row, rows, column + j, std::min(most, columns - j));
    }
    return;
  }
  const int64_t elements = kResultBlockBytes / element_bytes_;
  const int64_t n = std::min(columns, kBlockColumns);
  const int64_t most_rows = rows * n <= elements ? rows : elements / n / tiles_.rows * tiles_.rows;
  for (int64_t i = 0; i < rows; i += most_rows) {
    const int64_t m = std::min(most_rows, rows - i);
    const int64_t most_columns = std::max(tiles_.columns, elements / m / tiles_.columns * tiles_.columns);
    for (int64_t j = 0; j < columns; j += most_columns) {
      if (StopRequested()) return;
      MultiplyBlock(box, row + i, m, column + j, std::min(most_columns, columns - j));
    }
  }
}

void TiledGemm::MultiplyBlock(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns,
                              char* scattered) const {
  TiledBlock block;
  block.m = rows;
  block.n = columns;
  block.k = box.terms;
  const TiledOperand& lhs = operands_[kLhs];
  block.packs_a = lhs.is_packed && !lhs.slide.is_used();
  block.packs_b = operands_[kRhs].is_packed;
  const auto panel = [&](DotSide side, int64_t first_in_box, int64_t first_line) -> const char* {
    const TiledOperand& operand = operands_[side];
    if (operand.windows.is_used()) return box.matrices[side];
    if (operand.slide.is_used()) return box.panels[side] + first_in_box * element_bytes_;
    if (operand.is_packed) return box.panels[side] + first_in_box * box.terms * element_bytes_;
    return (operand.is_widened ? box.panels[side] : box.matrices[side]) +
           ((first_line + first_in_box) * operand.lines[0].strides[side] + box.term * operand.terms[0].strides[side]) *
               element_bytes_;
  };
  block.a = panel(kLhs, row, box.row);
  block.b = panel(kRhs, column, box.column);
  block.a_term_step = block.packs_a ? tiles_.rows : lhs.terms[0].strides[kLhs];
  block.a_panel_step = block.packs_a ? tiles_.rows * box.terms : tiles_.rows;
  if (lhs.windows.is_used()) {
    block.rows = lhs.windows.Rows(box.row + row, box.term);
    block.a_term_step = lhs.windows.term_step();
  }
  if (lhs.slide.is_used()) {
    block.a_term_step = lhs.SlideStep(box.rows);
    block.a_panel_step = tiles_.rows;
    block.run_terms = box.terms / lhs.slide.count;
    block.a_run_step = lhs.slide.lines;
  }
  block.b_term_step = block.packs_b ? tiles_.columns : operands_[kRhs].terms[0].strides[kRhs];
  block.b_column_step = block.packs_b ? 1 : operands_[kRhs].lines[0].strides[kRhs];
  block.b_panel_step = tiles_.columns * (block.packs_b ? box.terms : block.b_column_step);
  const int64_t place =
      OffsetOf(kDotResult, result_rows_, box.row + row) + OffsetOf(kDotResult, result_columns_, box.column + column);
  const int64_t step = result_columns_[0].strides[kDotResult];
  const bool is_finished = box.epilogue != nullptr && box.term + box.terms == terms_.size;
  const bool is_elsewhere = is_finished && box.epilogue->blocks != nullptr;
  char* const c = scattered != nullptr ? scattered
                  : is_elsewhere       ? box.epilogue->blocks + box.slot * block_bytes()
                                       : box.result + place * element_bytes_;
  block.c = c;
  block.c_column_step = is_elsewhere || scattered != nullptr ? rows : step;
  block.accumulates = box.accumulates || box.term > 0;
  tiles_.multiply(block);
  if (!is_finished) return;
  box.epilogue->finish({.elements = c,
                        .elements_step = block.c_column_step,
                        .first = box.first + place,
                        .first_step = step,
                        .rows = rows,
                        .columns = columns,
                        .slot = box.slot});
}

void TiledGemm::MoveToProduct(int64_t index, Box* box) const {
  for (DotSide side : {kLhs, kRhs}) {
    if (!operands_[side].factored.is_used()) box->matrices[side] += BatchOffset(side, index);
  }
  box->product = index;
  const int64_t result = BatchOffset(kDotResult, index);
  box->first += result / element_bytes_;
  if (box->result != nullptr) box->result += result;
}

template <typename Task>
void TiledGemm::RunTasks(int64_t tasks, ThreadPool& pool, Task task) const {
  if (!runs_on_caller_ && tasks > 1) {
    pool.ParallelFor(tasks, task);
    return;
  }
  for (int64_t i = 0; i < tasks && !StopRequested(); ++i) task(i);
}

// Calls task(index, slot): no two at a time have the same slot, and a thread that goes on keeps its own.
template <typename Task>
void TiledGemm::RunInSlots(int64_t tasks, ThreadPool& pool, Task task) const {
  std::atomic<int64_t> next{0};
  RunTasks(std::min(slots_, tasks), pool, [&](int64_t slot) {
    while (true) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= tasks || StopRequested()) return;
      task(index, slot);
    }
  });
}

void TiledGemm::MoveToTerms(int64_t index, Box* box) const {
  box->term = index * terms_.part;
  box->terms = terms_.Length(index);
}

// A part of the rows of a product, over boxes of terms that follow each other.
void TiledGemm::RunPart(Box part, int64_t index, int64_t slot, int64_t first, int64_t count) const {
  part.row = index == 0 ? 0 : part_ends_[static_cast<size_t>(index - 1)];
  part.rows = part_ends_[static_cast<size_t>(index)] - part.row;
  part.panels[kLhs] += slot * slot_bytes_;
  part.slot = slot;
  for (int64_t p = first; p < first + count; ++p) {
    if (StopRequested()) return;
    MoveToTerms(p, &part);
    if (operands_[kLhs].slide.is_used()) {
      operands_[kLhs].PackSlide(tiles_, part.matrices[kLhs], part.row, part.rows, part.panels[kLhs]);
    } else {
      PackAll(kLhs, part);
    }
    Multiply(part, 0, part.rows, 0, part.columns);
  }
}

void TiledGemm::RunOwnRows(const Box& box, int64_t first, int64_t count, ThreadPool& pool) const {
  RunInSlots(static_cast<int64_t>(part_ends_.size()), pool,
             [&](int64_t index, int64_t slot) { RunPart(box, index, slot, first, count); });
}

// Nothing is packed for all threads, so nobody waits at the end of a product.
void TiledGemm::RunRowsOfProducts(Box box, ThreadPool& pool) const {
  box.columns = columns_.size;
  const int64_t parts = static_cast<int64_t>(part_ends_.size());
  RunInSlots(num_products_ * parts, pool, [&](int64_t index, int64_t slot) {
    Box product = box;
    MoveToProduct(index / parts, &product);
    RunPart(product, index % parts, slot, 0, terms_.parts());
  });
}

void TiledGemm::RunOwnColumns(const Box& box, ThreadPool& pool) const {
  RunInSlots(CeilDiv(box.columns, task_columns_), pool, [&](int64_t index, int64_t slot) {
    Box part = box;
    part.column += index * task_columns_;
    part.columns = std::min(task_columns_, box.columns - index * task_columns_);
    part.panels[kRhs] += slot * slot_bytes_;
    part.slot = slot;
    PackAll(kRhs, part);
    Multiply(part, 0, part.rows, 0, part.columns);
  });
}

// Tasks with the same panels of lhs follow each other, so that a thread finds them in its cache.
void TiledGemm::RunShared(const Box& box, ThreadPool& pool) const {
  const int64_t row_tasks = CeilDiv(box.rows, task_rows_), column_tasks = CeilDiv(box.columns, task_columns_);
  const auto multiply = [&](int64_t task, const Box& part) {
    const int64_t row = task / column_tasks * task_rows_, column = task % column_tasks * task_columns_;
    Multiply(part, row, std::min(task_rows_, box.rows - row), column, std::min(task_columns_, box.columns - column));
  };
  const int64_t tasks = row_tasks * column_tasks;
  if (box.epilogue == nullptr) return RunTasks(tasks, pool, [&](int64_t task) { multiply(task, box); });
  RunInSlots(tasks, pool, [&](int64_t task, int64_t slot) {
    Box part = box;
    part.slot = slot;
    multiply(task, part);
  });
}

// Columns, terms, rows: panels of rhs are packed once, and those of lhs once for every box of columns.
void TiledGemm::RunBoxes(Box box, ThreadPool& pool) const {
  for (int64_t j = 0; j < columns_.parts(); ++j) {
    box.column = j * columns_.part;
    box.columns = columns_.Length(j);
    for (int64_t p = 0; p < terms_.parts(); ++p) {
      MoveToTerms(p, &box);
      for (int64_t i = 0; i < rows_.parts(); ++i) {
        if (StopRequested()) return;
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
    if (StopRequested()) return;
    MoveToTerms(p, &box);
    PackAll(kLhs, box);
    PackAll(kRhs, box);
    Multiply(box, 0, box.rows, 0, box.columns);
  }
}

void TiledGemm::Run(const char* lhs, const char* rhs, char* result, char* scratch, bool accumulates, ThreadPool& pool,
                    const GemmEpilogue* epilogue) const {
  Box box;
  box.matrices = {lhs, rhs};
  box.result = result;
  box.accumulates = accumulates;
  box.epilogue = epilogue;
  RunFrom(box, scratch, pool);
}

void TiledGemm::RunFactored(const std::array<const char*, 2>& operands, const FactorAddresses& factors, char* result,
                            char* scratch, ThreadPool& pool) const {
  Box box;
  box.matrices = operands;
  box.factors = factors;
  box.result = result;
  RunFrom(box, scratch, pool);
}

// All products, of which the box is the first.
void TiledGemm::RunFrom(Box box, char* scratch, ThreadPool& pool) const {
  box.panels = {scratch + places_[kLhs], scratch + places_[kRhs]};
  if (method_ == Method::kOwnProducts) {
    return RunInSlots(num_products_, pool, [&](int64_t product, int64_t slot) {
      Box own = box;
      MoveToProduct(product, &own);
      for (char*& panels : own.panels) panels += slot * slot_bytes_;
      own.slot = slot;
      RunProduct(own);
    });
  }
  const TiledOperand& rhs = operands_[kRhs];
  if (method_ == Method::kOwnRows && !rhs.is_packed && !rhs.is_widened) return RunRowsOfProducts(box, pool);
  for (int64_t i = 0; i < num_products_ && !StopRequested(); ++i) {
    Box product = box;
    MoveToProduct(i, &product);
    RunBoxes(product, pool);
  }
}

}  // namespace tensord::cpu
