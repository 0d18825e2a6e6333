#include "backends/cpu/tiled_operand.h"

#include <algorithm>

namespace tensord::cpu {

int64_t OffsetOf(DotSide side, const DotAxisList& axes, int64_t index) {
  int64_t offset = 0;
  for (const DotAxis& axis : axes) {
    offset += index % axis.size * axis.strides[side];
    index /= axis.size;
  }
  return offset;
}

void TiledOperand::Pack(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines,
                        int64_t first_term, int64_t num_terms, char* panels) const {
  if (padded.is_used()) {
    return padded.Pack(tiles, matrix, first_line, num_lines, first_term, num_terms, width, panels);
  }
  const DotAxis& fast_line = lines[0];
  int64_t offsets[kMaxPanelWidth];
  PanelPiece piece;
  piece.lines = num_lines;
  piece.width = width;
  piece.panel_step = width * num_terms;
  const char* from = matrix;
  if (fast_line.strides[side] == 1 && first_line % fast_line.size + num_lines <= fast_line.size) {
    from += OffsetOf(side, lines, first_line) * element_bytes;
  } else {
    piece.offsets = offsets;
    for (int64_t i = 0; i < num_lines;) {
      int64_t offset = OffsetOf(side, lines, first_line + i);
      const int64_t count = std::min(num_lines - i, fast_line.size - (first_line + i) % fast_line.size);
      for (int64_t end = i + count; i < end; ++i) {
        offsets[i] = offset;
        offset += fast_line.strides[side];
      }
    }
  }
  PackRunsOfTerms(tiles, from, piece, first_term, num_terms, panels);
}

void TiledOperand::PackRunsOfTerms(const GemmTiles& tiles, const char* from, PanelPiece piece, int64_t first_term,
                                   int64_t num_terms, char* panels) const {
  const DotAxis& fast_term = terms[0];
  piece.term_stride = fast_term.strides[side];
  const int64_t end = first_term + num_terms;
  for (int64_t term = first_term; term < end; term += piece.terms) {
    piece.terms = std::min(end - term, fast_term.size - term % fast_term.size);
    piece.from = from + OffsetOf(side, terms, term) * element_bytes;
    tiles.pack(piece, panels);
    panels += piece.terms * width * element_bytes;
  }
}

}  // namespace tensord::cpu
