#include "backends/cpu/contraction/operands/padded_lines.h"

#include <algorithm>
#include <cstring>

#include "engine/base/rounding.h"

namespace tensord::cpu {
namespace {

// The lines [begin, end) of a panel. Often it is one.
template <typename Element>
void ClearLines(int64_t begin, int64_t end, const PanelPiece& piece, char* panel) {
  Element* lines = reinterpret_cast<Element*>(panel);
  for (int64_t term = 0; term < piece.terms; ++term) {
    for (int64_t line = begin; line < end; ++line) lines[line] = 0;
    lines += piece.term_step;
  }
}

}  // namespace

// Lines beside each other along the first axis: all of the axis, or its part in the panel. Has no initial values,
// because many runs stay unused.
struct PaddedLines::Run {
  int64_t line;  // of the panel
  int64_t count;
  int64_t first, last;  // [first, last) exist
  Places places;
};

struct PaddedLines::Panel {
  int64_t lines = 0;
  int64_t num_runs = 0;
  int64_t existing = -1;  // a line that exists
  Run runs[kMaxPanelWidth];
  int64_t offsets[kMaxPanelWidth];
};

// Strides count elements of the padded tensor: one is so many steps along the slowest axis that it is not shorter than.
bool PaddedLines::Follow(DotSide side, const PaddedTensor& tensor, const DotAxis& axis, Digit* digit) {
  const int64_t stride = axis.strides[side];
  size_t moved = 0;
  while (moved + 1 < tensor.axes.size() && tensor.axes[moved + 1].padded_stride <= stride) ++moved;
  // Among equal strides, the last one belongs to the axis that is longer than 1.
  const PaddedTensor::Axis& along = tensor.axes[moved];
  const int64_t step = stride / along.padded_stride;
  if (step * along.padded_stride != stride) return false;
  digit->size = axis.size;
  digit->stride = step * along.stride;
  size_t edge = 0;
  for (size_t a = 0; a < moved; ++a) edge += tensor.axes[a].is_padded() ? 1 : 0;
  if (along.is_padded()) {
    digit->steps[edge] = step;
    return along.start + step * (axis.size - 1) < along.padded_size;
  }
  // Several axes without padding lie in the tensor as in the padded one, relative to each other.
  int64_t reach = step * (axis.size - 1) * along.padded_stride;
  for (size_t a = moved; a < tensor.axes.size() && reach >= tensor.axes[a].padded_stride * tensor.axes[a].padded_size;
       ++a) {
    if (tensor.axes[a].is_padded() || (a + 1 < tensor.axes.size() && tensor.axes[a + 1].is_padded())) return false;
  }
  return true;
}

bool PaddedLines::CanFollow(DotSide side, const PaddedTensor& tensor, const DotAxisList& lines,
                            const DotAxisList& terms, const DotAxisList& batch) {
  const auto is_padded = [](const PaddedTensor::Axis& axis) { return axis.is_padded(); };
  if (std::count_if(tensor.axes.begin(), tensor.axes.end(), is_padded) > static_cast<ptrdiff_t>(kMaxEdges)) {
    return false;
  }
  const auto stays_off_edges = [](const Digit& digit) { return digit.steps == Places(); };
  for (const DotAxisList* list : {&lines, &terms, &batch}) {
    for (const DotAxis& axis : *list) {
      Digit digit;
      if (axis.size > 1 && !Follow(side, tensor, axis, &digit)) return false;
      if ((list == &batch || &axis == &terms[0]) && !stays_off_edges(digit)) return false;
    }
  }
  return true;
}

std::optional<PaddedLines> PaddedLines::Plan(DotSide side, const PaddedTensor& tensor, const DotAxisList& lines,
                                             const DotAxisList& terms, int64_t element_bytes) {
  if (!CanFollow(side, tensor, lines, terms, {})) return std::nullopt;
  return PaddedLines(side, tensor, lines, terms, element_bytes);
}

PaddedLines::PaddedLines(DotSide side, const PaddedTensor& tensor, const DotAxisList& lines, const DotAxisList& terms,
                         int64_t element_bytes)
    : element_bytes_(element_bytes) {
  const auto follow = [&](const DotAxisList& axes, Digits* digits) {
    for (const DotAxis& axis : axes) {
      Digit& digit = digits->emplace_back();
      if (axis.size > 1) Follow(side, tensor, axis, &digit);
    }
  };
  follow(lines, &lines_);
  follow(terms, &terms_);
  extent_ = 1;
  for (const PaddedTensor::Axis& axis : tensor.axes) {
    origin_ += axis.start * axis.stride;
    if (!axis.is_padded()) continue;
    extent_ += (axis.size - 1) * axis.stride;
    starts_[num_edges_] = axis.start;
    sizes_[num_edges_++] = axis.size;
  }
}

DotAxisList PaddedLines::Unpadded(DotSide side, const PaddedTensor& tensor, DotAxisList axes) {
  for (DotAxis& axis : axes) {
    Digit digit;
    if (axis.size > 1) Follow(side, tensor, axis, &digit);
    axis.strides[side] = digit.stride;
  }
  return axes;
}

PaddedLines::Point PaddedLines::PointOf(const Digits& digits, int64_t index) {
  Point point;
  for (size_t i = 0; i < digits.size() && index > 0; ++i) {
    const Digit& digit = digits[i];
    const int64_t at = i + 1 == digits.size() ? index : index % digit.size;
    index /= digit.size;
    point.offset += at * digit.stride;
    for (size_t e = 0; e < kMaxEdges; ++e) point.places[e] += at * digit.steps[e];
  }
  return point;
}

void PaddedLines::FindRuns(int64_t first_line, Panel* panel) const {
  const Digit& fast = lines_[0];
  for (int64_t line = 0; line < panel->lines;) {
    Run& run = panel->runs[panel->num_runs++];
    const Point start = PointOf(lines_, first_line + line);
    run.line = line;
    run.count = std::min(panel->lines - line, fast.size - (first_line + line) % fast.size);
    run.places = start.places;
    for (int64_t i = 0; i < run.count; ++i) panel->offsets[line + i] = start.offset + i * fast.stride;
    line += run.count;
  }
}

// Finds the lines that exist for the terms from a point on; returns true if some do not.
bool PaddedLines::FindHoles(const Point& term, Panel* panel) const {
  const Places& steps = lines_[0].steps;
  bool has_holes = false;
  panel->existing = -1;
  for (int64_t r = 0; r < panel->num_runs; ++r) {
    Run& run = panel->runs[r];
    run.first = 0;
    run.last = run.count;
    for (size_t e = 0; e < num_edges_; ++e) {
      const int64_t place = starts_[e] + run.places[e] + term.places[e], size = sizes_[e], step = steps[e];
      if (step == 0) {
        if (place < 0 || place >= size) run.last = 0;
        continue;
      }
      if (place < 0) run.first = std::max(run.first, step == 1 ? -place : CeilDiv(-place, step));
      if (place + step * (run.count - 1) >= size) {
        run.last = std::min(run.last, place >= size ? 0 : step == 1 ? size - place : CeilDiv(size - place, step));
      }
    }
    run.first = std::min(run.first, run.count);
    run.last = std::max(run.first, run.last);
    has_holes = has_holes || run.last - run.first < run.count;
    if (panel->existing < 0 && run.first < run.last) panel->existing = run.line + run.first;
  }
  return has_holes;
}

void PaddedLines::MarkExisting(int64_t first_line, int64_t lines, int64_t term_step, absl::Span<uint64_t> bits) const {
  Panel panel;
  panel.lines = lines;
  FindRuns(first_line, &panel);
  for (size_t i = 0; i < bits.size(); ++i) {
    FindHoles(PointOf(terms_, static_cast<int64_t>(i) * term_step), &panel);
    bits[i] = 0;
    for (int64_t r = 0; r < panel.num_runs; ++r) {
      const Run& run = panel.runs[r];
      for (int64_t line = run.first; line < run.last; ++line) bits[i] |= uint64_t{1} << (run.line + line);
    }
  }
}

// Packs a missing element as the number at its place, if the place is in the tensor, and then makes it zero, because
// the lines beside it are packed in long runs.
void PaddedLines::PackTerms(const GemmTiles& tiles, const char* tensor, const Point& term, Panel* panel,
                            PanelPiece piece, char* to) const {
  const int64_t first = origin_ + term.offset;
  piece.from = tensor + first * element_bytes_;
  piece.offsets = panel->offsets;
  if (!FindHoles(term, panel)) return tiles.pack(piece, to);
  if (panel->existing < 0) {
    for (int64_t i = 0; i < piece.terms; ++i, to += piece.term_step * element_bytes_) {
      std::memset(to, 0, static_cast<size_t>(piece.width * element_bytes_));
    }
    return;
  }
  int64_t offsets[kMaxPanelWidth];
  std::copy_n(panel->offsets, panel->lines, offsets);
  const auto for_holes = [&](auto visit) {
    for (int64_t r = 0; r < panel->num_runs; ++r) {
      const Run& run = panel->runs[r];
      if (run.first > 0) visit(run.line, run.line + run.first);
      if (run.last < run.count) visit(run.line + run.last, run.line + run.count);
    }
  };
  for_holes([&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t place = first + offsets[line];
      if (place < 0 || place >= extent_) offsets[line] = offsets[panel->existing];
    }
  });
  piece.offsets = offsets;
  tiles.pack(piece, to);
  for_holes([&](int64_t begin, int64_t end) {
    if (element_bytes_ == 4) {
      ClearLines<uint32_t>(begin, end, piece, to);
    } else {
      ClearLines<uint64_t>(begin, end, piece, to);
    }
  });
}

void PaddedLines::Pack(const GemmTiles& tiles, const char* tensor, int64_t first_line, int64_t lines,
                       int64_t first_term, int64_t terms, PanelPlace place) const {
  Panel found;
  found.lines = lines;
  FindRuns(first_line, &found);
  PanelPiece piece;
  piece.lines = lines;
  piece.width = place.width;
  piece.term_step = place.term_step;
  piece.term_stride = terms_[0].stride;
  const int64_t end = first_term + terms;
  for (int64_t term = first_term; term < end; term += piece.terms) {
    piece.terms = std::min(end - term, terms_[0].size - term % terms_[0].size);
    PackTerms(tiles, tensor, PointOf(terms_, term), &found, piece, place.panel);
    place.panel += piece.terms * place.term_step * element_bytes_;
  }
}

}  // namespace tensord::cpu
