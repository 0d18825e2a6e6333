#include "backends/cpu/contraction/operands/tiled_operand.h"

#include <algorithm>

#include "backends/cpu/contraction/operands/strided_lines.h"

namespace tensord::cpu {

TiledOperand::Slide TiledOperand::FindSlide(DotSide side, DotAxisList* lines, DotAxisList* terms) {
  if (terms->size() < 2) return {};
  DotAxis& line = lines->back();
  const DotAxis term = terms->back();
  const int64_t step = line.strides[side];
  if (step <= 0 || term.strides[side] <= 0 || term.strides[side] % step != 0) return {};
  const int64_t longer = line.size + term.strides[side] / step * (term.size - 1);
  if (2 * longer > term.size * line.size) return {};
  Slide slide;
  slide.count = term.size;
  slide.lines = term.strides[side] / step * (NumElements(*lines) / line.size);
  line.size = longer;
  terms->pop_back();
  return slide;
}

void TiledOperand::Pack(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines,
                        int64_t first_term, int64_t num_terms, char* panels) const {
  PackTo(tiles, matrix, first_line, num_lines, first_term, num_terms, {panels, width, width});
}

// Not a multiple of a page: terms would crowd each other out of the cache.
int64_t TiledOperand::SlideStep(int64_t num_lines) const {
  const int64_t element_bytes = SizeOf(panel_dtype);
  const int64_t line_of_cache = 64 / element_bytes;
  const int64_t step = (num_lines + slide.reach() + line_of_cache - 1) / line_of_cache * line_of_cache;
  return step * element_bytes % 4096 == 0 ? step + line_of_cache : step;
}

void TiledOperand::PackSlide(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines,
                             char* packed) const {
  const int64_t step = SlideStep(num_lines), all = num_lines + slide.reach(), num_terms = NumElements(terms);
  for (int64_t line = 0; line < all; line += kMaxPanelWidth) {
    const int64_t count = std::min(all - line, kMaxPanelWidth);
    PackTo(tiles, matrix, first_line + line, count, 0, num_terms, {packed + line * SizeOf(panel_dtype), count, step});
  }
}

void TiledOperand::PackTo(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines,
                          int64_t first_term, int64_t num_terms, PanelPlace place) const {
  if (padded.is_used()) return padded.Pack(tiles, matrix, first_line, num_lines, first_term, num_terms, place);
  const StridedLines strided = {side, dtype, panel_dtype, lines, terms, pairs_terms};
  if (pairs_terms) {
    first_term *= 2;
    num_terms = std::min(2 * num_terms, NumElements(terms) - first_term);
  }
  strided.Pack(tiles, matrix, first_line, num_lines, first_term, num_terms, place);
}

}  // namespace tensord::cpu
