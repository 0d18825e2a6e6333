#include <algorithm>
#include <optional>
#include <utility>

#include "backends/cpu/contraction/tiled_gemm.h"
#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/cache_sizes.h"
#include "backends/cpu/matmul/bf16_tiles.h"
#include "backends/cpu/matmul/gemm.h"
#include "engine/base/rounding.h"

// How a contraction becomes boxes and panels.

namespace tensord::cpu {
namespace {

// The bytes of one row: a panel of b stays in the nearest cache. More if nothing but rows of a is packed. In F64
// 256 x 256 takes 1.04 times as long with half of the first, and with twice; 1024 x 1024 with half of the last.
constexpr int64_t kTermBlockBytes = 3 << 10;
constexpr int64_t kLongTermBlockBytes = 4 << 10;
constexpr int64_t kWholeTermBlockBytes = 8 << 10;

// The workspace of packed operands, a part of what the tensors take: more saves packing the other operand again, and
// counts in what a run needs. Of 16-bit floats panels are wider than the tensors, and packed once where they fit.
constexpr int64_t kMinPackedBytes = int64_t{2} << 20;
constexpr int64_t kMaxPackedBytes = int64_t{4} << 20;
constexpr int64_t kTensorsToPacked = 12;
// The same for 16-bit floats.
constexpr int64_t kMaxPackedHalfBytes = int64_t{6} << 20;
constexpr int64_t kTensorsToPackedHalves = 2;
constexpr int64_t kMostHalfPanels = 4;             // packed at a time: with more, fewer threads have some
constexpr int64_t kRoundedColumns = 128;           // from which on whole sums save more than short panels cost
constexpr double kLeastPairedWork = 48 * 48 * 48;  // less is not worth packing both operands

constexpr int64_t kPartBytes = int64_t{256} << 10;  // that a thread goes through again and again; half or twice: 1 %
// Multiplications of a task: 2 to 75 µs of a thread in F64, so that to take one costs little and threads end together.
constexpr double kTileTaskWork = 1 << 22;
constexpr double kLeastTaskWork = 1 << 17;
constexpr double kProductWork = 1 << 23;  // one thread's share of a batch
constexpr int64_t kTileParts = 16;        // tasks of a product, if they are not smaller than that
constexpr int64_t kLeastParts = 5;        // of its rows or columns, that a thread takes them alone: else shares differ
constexpr int64_t kWindowPanels = 16;     // of rows that are read where they lie: few, so that threads end together

// How often an operand has to be read before packing it is worth its while, of those that tiles could read as they lie,
// and of those that are scattered, which other loops multiply (docs/why/0014).
constexpr int64_t kReads = 8;
constexpr int64_t kLeastReads = 8;
constexpr int64_t kLargeResultBytes = int64_t{4} << 20;  // with few terms it goes past the caches, by other loops
constexpr int64_t kTransposedRun = 8;                    // terms side by side: a square that registers transpose
// Tiles write a result in pieces if it has so many terms, or runs of a line: the pieces cost little beside them.
constexpr int64_t kScatteredTerms = 16;
constexpr int64_t kScatteredRunBytes = 64;

int64_t EvenPart(int64_t size, int64_t most, int64_t multiple) {
  const int64_t parts = CeilDiv(size, std::max(most / multiple * multiple, multiple));
  return RoundUp(CeilDiv(size, parts), multiple);
}

// Estimates the cost of packing an element, on a rough scale.
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

// Tells whether both operands can be multiplied as pairs of terms, which begin at the start of runs of terms.
bool CanPairTerms(const DotSpace& space, const std::array<DType, 2>& read) {
  const auto is_even_beyond_one = [&space](DotSide side) {
    const DotAxisList terms = MergeOn(side, space.roles[kSummed]);
    return terms.size() == 1 || terms[0].size % 2 == 0;
  };
  return read[kLhs] == DType::kBF16 && read[kRhs] == DType::kBF16 && is_even_beyond_one(kLhs) &&
         is_even_beyond_one(kRhs);
}

// Tells whether a matrix lies without gaps, with either axis innermost.
bool IsDense(DotSide side, const TiledOperand& operand) {
  const DotAxis line = operand.lines[0], term = operand.terms[0];
  const bool has_lines_first = line.strides[side] == 1 && (term.size == 1 || term.strides[side] == line.size);
  const bool has_terms_first = term.strides[side] == 1 && (line.size == 1 || line.strides[side] == term.size);
  return has_lines_first || has_terms_first;
}

// Puts the longest summed axis first if tiles can read windows in place only then, whatever order rhs prefers.
void OrderForWindows(const GemmTiles& tiles, const PaddedTensor& padded, int64_t element_bytes, DotSpace* space) {
  if (tiles.window_lanes == 0 || space->roles[kSummed].size() < 2) return;
  const DotAxisList lines = MergeOn(kLhs, space->roles[kRows]), batch = MergeOn(kLhs, space->roles[kBatch]);
  const auto suits = [&](const DotAxisList& summed) {
    const DotAxisList terms = MergeOn(kLhs, summed);
    return (padded.axes.empty() || PaddedLines::CanFollow(kLhs, padded, lines, terms, batch)) &&
           WindowRows::AreFaster(padded, lines, terms, element_bytes, tiles.window_lanes);
  };
  if (suits(space->roles[kSummed])) return;
  DotAxisList summed = SortedBy(kLhs, space->roles[kSummed]);
  const auto longest = std::max_element(summed.begin(), summed.end(),
                                        [](const DotAxis& a, const DotAxis& b) { return a.size < b.size; });
  std::rotate(summed.begin(), longest, longest + 1);
  if (suits(summed)) space->roles[kSummed] = std::move(summed);
}

// Summed axes may be walked in any order, the same on both sides, and so may columns: the one that is packed best.
DotSpace InOrderOfPacking(const DotSpace& space, const GemmTiles& tiles, const PaddedTensors& padded,
                          int64_t element_bytes) {
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
  OrderForWindows(tiles, padded[kLhs], element_bytes, &best);
  return best;
}

// Whether the loops are the fastest way; the space is in the order in which it is packed.
bool IsFastestInOrder(const DotSpace& space, const GemmTiles& tiles, DType dtype, const PaddedTensors& padded) {
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
        !PaddedLines::CanFollow(side, padded[side], lines, terms, MergeOn(side, space.roles[kBatch]))) {
      return false;
    }
  }
  const DotAxis run = MergeOn(kDotResult, space.roles[kRows])[0];
  if (run.strides[kDotResult] != 1) return false;
  // Tiles across the end of an axis of the result are copied there, which long sums and runs make cheap.
  return (HoldsTiles(space.roles[kRows], tiles.rows) && HoldsTiles(space.roles[kColumns], tiles.columns)) ||
         (k >= kScatteredTerms && run.size * SizeOf(dtype) >= kScatteredRunBytes);
}

// In the order in which it is packed; nothing where the machine lacks the loops or they are not the fastest way.
std::optional<DotSpace> SpaceOfTiles(const DotSpace& space, DType dtype, const PaddedTensors& padded) {
  const GemmTiles tiles = GetGemmTiles(dtype);
  if (tiles.rows == 0) return std::nullopt;
  DotSpace ordered = InOrderOfPacking(space, tiles, padded, SizeOf(dtype));
  if (!IsFastestInOrder(ordered, tiles, dtype, padded)) return std::nullopt;
  return ordered;
}

}  // namespace

bool TiledGemm::IsFastest(const DotSpace& space, DType dtype) { return SpaceOfTiles(space, dtype, {}).has_value(); }

std::optional<TiledGemm> TiledGemm::Plan(const DotSpace& space, DType dtype, const PaddedTensors& padded) {
  const std::optional<DotSpace> ordered = SpaceOfTiles(space, dtype, padded);
  if (!ordered.has_value()) return std::nullopt;
  return TiledGemm(*ordered, dtype, padded, {dtype, dtype}, {});
}

std::optional<TiledGemm> TiledGemm::Plan(const DotSpace& space, DType dtype, const FactoredTensors& factored) {
  const std::optional<DotSpace> ordered = SpaceOfTiles(space, dtype, {});
  if (!ordered.has_value()) return std::nullopt;
  return TiledGemm(*ordered, dtype, {}, {dtype, dtype}, factored);
}

TiledGemm TiledGemm::PlanWidening(const DotSpace& space, const std::array<DType, 2>& read) {
  const DType dtype = DType::kF32;
  return TiledGemm(InOrderOfPacking(space, GetGemmTiles(dtype), {}, SizeOf(dtype)), dtype, {}, read, {});
}

TiledGemm::TiledGemm(const DotSpace& space, DType dtype, const PaddedTensors& padded, const std::array<DType, 2>& read,
                     const FactoredTensors& factored)
    : tiles_(GetGemmTiles(dtype)), dtype_(dtype), element_bytes_(SizeOf(dtype)), num_products_(space.Size(kBatch)) {
  rows_.size = space.Size(kRows);
  columns_.size = space.Size(kColumns);
  terms_.size = space.Size(kSummed);
  const GemmTiles pair_tiles = GetBf16Tiles();
  const double work =
      static_cast<double>(rows_.size) * static_cast<double>(columns_.size) * static_cast<double>(terms_.size);
  const bool pairs_terms = pair_tiles.rows > 0 && work >= kLeastPairedWork && CanPairTerms(space, read);
  if (pairs_terms) {
    tiles_ = pair_tiles;
    terms_.size = CeilDiv(terms_.size, 2);
  }
  result_rows_ = MergeOn(kDotResult, space.roles[kRows]);
  result_columns_ = MergeOn(kDotResult, space.roles[kColumns]);
  for (DotSide side : {kLhs, kRhs}) {
    TiledOperand& operand = operands_[side];
    operand.side = side;
    operand.panel_dtype = dtype;
    operand.lines = MergeOn(side, space.roles[side == kLhs ? kRows : kColumns]);
    operand.terms = MergeOn(side, space.roles[kSummed]);
    operand.batch = MergeOn(side, space.roles[kBatch]);
    operand.width = side == kLhs ? tiles_.rows : tiles_.columns;
    operand.dtype = read[side];
    operand.pairs_terms = pairs_terms;
    if (!padded[side].axes.empty()) {
      operand.padded = PaddedLines(side, padded[side], operand.lines, operand.terms, element_bytes_);
      operand.batch = PaddedLines::Unpadded(side, padded[side], operand.batch);
    }
    operand.factored = FactoredLines(side, factored[side], operand.lines, operand.terms, operand.batch, operand.dtype);
    const bool is_matrix = operand.lines.size() == 1 && operand.terms.size() == 1;
    // An operand that is small or read a few times is not worth packing. A tile reads rows of lhs side by side.
    const int64_t others = side == kLhs ? columns_.size : rows_.size;
    const int64_t other_width = side == kLhs ? tiles_.columns : tiles_.rows;
    const int64_t bytes = (side == kLhs ? rows_.size : columns_.size) * terms_.size * element_bytes_;
    const bool lies_ready = is_matrix && (side == kRhs || operand.lines[0].strides[kLhs] == 1);
    const bool is_readable = lies_ready && operand.dtype == dtype_;
    operand.is_widened = lies_ready && !is_readable && !pairs_terms && IsDense(side, operand) &&
                         bytes <= tiles_.unpacked_bytes && terms_.size * element_bytes_ <= kLongTermBlockBytes;
    operand.is_packed =
        !operand.is_widened && (!is_readable || operand.padded.is_used() || operand.factored.is_used() ||
                                (others > kReads * other_width && bytes > tiles_.unpacked_bytes));
  }
  result_batch_ = MergeOn(kDotResult, space.roles[kBatch]);
  PlanWindows(padded[kLhs]);
  // Columns whose terms lie side by side are read in place as fast as panels, also by a thread that packs its own rows
  // of lhs.
  TiledOperand& rhs = operands_[kRhs];
  const bool is_there = !rhs.padded.is_used() && !rhs.factored.is_used() && rhs.dtype == dtype_;
  if (tiles_.reads_columns && rhs.is_packed && is_there && rhs.lines.size() == 1 && rhs.terms.size() == 1 &&
      rhs.terms[0].strides[kRhs] == 1 && HasOwnRows()) {
    rhs.is_packed = false;
  }
  PlanBoxes(padded[kLhs]);
}

bool TiledGemm::HasOwnRows() const {
  return (operands_[kLhs].is_packed || operands_[kLhs].windows.is_used()) &&
         rows_.size >= kLeastParts * 2 * tiles_.rows;
}

int64_t TiledGemm::PackedBytes(DotSide side, int64_t lines) const {
  const TiledOperand& operand = operands_[side];
  if (operand.is_widened) return RoundUp(lines * terms_.size * element_bytes_, 64);
  if (operand.slide.is_used()) return operand.SlideStep(lines) * NumElements(operand.terms) * element_bytes_;
  return operand.is_packed ? RoundUp(RoundUp(lines, operand.width) * LineBytes(), 64) : 0;
}

// Windows that nothing has to be packed of.
void TiledGemm::PlanWindows(const PaddedTensor& padded) {
  TiledOperand& lhs = operands_[kLhs];
  if (!lhs.is_packed || lhs.dtype != dtype_ || lhs.factored.is_used()) return;
  std::optional<WindowRows> windows =
      WindowRows::Plan(padded, lhs.lines, lhs.terms, element_bytes_, tiles_.window_lanes);
  if (!windows.has_value()) return;
  lhs.windows = *std::move(windows);
  lhs.is_packed = false;
  if (operands_[kRhs].terms[0].strides[kRhs] != 1) operands_[kRhs].is_packed = true;
}

// If a thread packs all terms of its rows, windows that slide along the rows are packed once, not for each term.
void TiledGemm::PlanSlide(const PaddedTensor& padded) {
  TiledOperand& lhs = operands_[kLhs];
  DotAxisList lines = lhs.lines, terms = lhs.terms;
  if (!lhs.is_packed || lhs.dtype != dtype_ || lhs.factored.is_used()) return;
  const TiledOperand::Slide slide = TiledOperand::FindSlide(kLhs, &lines, &terms);
  if (!slide.is_used() || 2 * slide.reach() > rows_.size) return;
  // A part that is twice as long as windows reach stays in the thread's cache.
  const int64_t bytes = 3 * slide.reach() * NumElements(terms) * element_bytes_;
  if (bytes > MachineCacheSizes().l2 / 2) return;
  if (lhs.padded.is_used()) {
    std::optional<PaddedLines> slid = PaddedLines::Plan(kLhs, padded, lines, terms, element_bytes_);
    if (!slid.has_value()) return;
    lhs.padded = *std::move(slid);
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
  if (HasOwnRows()) return Method::kOwnRows;
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
  // A panel of 16-bit floats takes one or two lines of the cache for each term: as many as stay in the second cache.
  const int64_t half_bytes = std::min<int64_t>(MachineCacheSizes().l2 / 4 * 3, most / 2 / slots_);
  const int64_t half_panels =
      lhs.dtype == dtype_ ? 1 : std::clamp<int64_t>(half_bytes / panel_bytes, 1, kMostHalfPanels);
  const int64_t fit_panels = std::max(part_bytes / panel_bytes, half_panels);
  const int64_t most_panels = lhs.windows.is_used() ? kWindowPanels : std::max(least_panels, fit_panels);
  // Parts grow smaller towards the end, so that threads end together [Polychronopoulos and Kuck, Guided
  // self-scheduling, 1987]; a panel of rhs is read into the cache for few rows only at the end. Parts of many
  // independent products are of equal size.
  const int64_t products = operands_[kRhs].is_packed ? 1 : num_products_;
  const int64_t all_panels = CeilDiv(rows_.size, tiles_.rows);
  const int64_t even = CeilDiv(all_panels, CeilDiv(all_panels, most_panels));
  const bool shrinks = products < 4 * slots_;
  for (int64_t row = 0; row < rows_.size;) {
    const int64_t panels = CeilDiv(rows_.size - row, tiles_.rows);
    row += (shrinks ? std::clamp(panels / (2 * slots_), least_panels, most_panels) : even) * tiles_.rows;
    part_ends_.push_back(std::min(row, rows_.size));
  }
  rows_.part = rows_.size;
  slot_bytes_ = PackedBytes(kLhs, part_ends_[0]);
  slots_ = std::min(static_cast<int64_t>(part_ends_.size()) * products, slots_);
  if (slot_bytes_ > 0) slots_ = std::min(slots_, std::max<int64_t>(2, most / 2 / slot_bytes_));
  const int64_t rest = std::max(most / 2, most - slots_ * slot_bytes_);
  columns_.part =
      operands_[kRhs].is_packed ? EvenPart(columns_.size, rest / LineBytes(), tiles_.columns) : columns_.size;
}

void TiledGemm::PlanOwnColumns(int64_t most) {
  const int64_t columns = std::clamp(columns_.size / kTileParts, 4 * tiles_.columns,
                                     std::max(4 * tiles_.columns, kPartBytes / LineBytes()));
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
  const double work =
      std::clamp(rows * columns * terms / static_cast<double>(kTileParts), kLeastTaskWork, kTileTaskWork);
  task_rows_ = EvenPart(std::min(rows_.part, rows_.size), kPartBytes / LineBytes(), tiles_.rows);
  task_columns_ = EvenPart(std::min(columns_.part, columns_.size),
                           static_cast<int64_t>(work / (static_cast<double>(task_rows_) * terms)), tiles_.columns);
}

void TiledGemm::PlanTerms() {
  // Sums of a large result to be rounded are whole if possible: else they go through memory in F32.
  const bool makes_whole_sums =
      reads_halves() && columns_.size >= kRoundedColumns && terms_.size * element_bytes_ <= kWholeTermBlockBytes;
  const bool reads_columns = HasOwnRows() && !operands_[kRhs].is_packed;
  const int64_t line_bytes = makes_whole_sums                  ? kWholeTermBlockBytes
                             : reads_halves() || reads_columns ? kLongTermBlockBytes
                                                               : kTermBlockBytes;
  const int64_t most = line_bytes / element_bytes_;
  // Windows are read in whole runs if that cuts no smaller boxes.
  const WindowRows& windows = operands_[kLhs].windows;
  const int64_t multiple = windows.is_used() && windows.run_terms() <= most / 4 ? windows.run_terms() : 8;
  terms_.part = std::min(EvenPart(terms_.size, most, multiple), terms_.size);
}

void TiledGemm::PlanBoxes(const PaddedTensor& padded_lhs) {
  const double work =
      static_cast<double>(rows_.size) * static_cast<double>(columns_.size) * static_cast<double>(terms_.size);
  const int64_t tensors = element_bytes_ * num_products_ *
                          (rows_.size * terms_.size + terms_.size * columns_.size + rows_.size * columns_.size);
  // Both operands in 16-bit floats are packed, one of them again for each box of the other.
  const int64_t most = reads_halves()
                           ? std::clamp(tensors / kTensorsToPackedHalves, kMinPackedBytes, kMaxPackedHalfBytes)
                           : std::clamp(tensors / kTensorsToPacked, kMinPackedBytes, kMaxPackedBytes);
  PlanTerms();
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

}  // namespace tensord::cpu
