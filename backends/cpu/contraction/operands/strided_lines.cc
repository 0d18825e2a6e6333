#include "backends/cpu/contraction/operands/strided_lines.h"

#include <algorithm>

#include "backends/cpu/matmul/bf16_tiles.h"
#include "backends/cpu/matmul/half_packing.h"
#include "engine/base/rounding.h"

namespace tensord::cpu {

void StridedLines::Pack(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines,
                        int64_t first_term, int64_t num_terms, PanelPlace place) const {
  const DotAxis& fast_line = lines[0];
  const DotAxis& fast_term = terms[0];
  int64_t offsets[kMaxPanelWidth];
  PanelPiece piece;
  piece.lines = num_lines;
  piece.width = place.width;
  const int64_t together = pairs_terms ? 2 : 1;
  piece.panel_step = place.width * CeilDiv(num_terms, together);
  piece.term_step = place.term_step;
  piece.term_stride = fast_term.strides[side];
  const char* from = matrix;
  if (fast_line.strides[side] == 1 && first_line % fast_line.size + num_lines <= fast_line.size) {
    from += OffsetOf(side, lines, first_line) * SizeOf(dtype);
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
  const int64_t end = first_term + num_terms;
  for (int64_t term = first_term; term < end; term += piece.terms) {
    piece.terms = std::min(end - term, fast_term.size - term % fast_term.size);
    piece.from = from + OffsetOf(side, terms, term) * SizeOf(dtype);
    if (pairs_terms) {
      PackBf16Pairs(tiles, piece, place.panel);
    } else if (dtype == panel_dtype) {
      tiles.pack(piece, place.panel);
    } else {
      PackHalfPiece(tiles, dtype, piece, place.panel);
    }
    place.panel += CeilDiv(piece.terms, together) * place.term_step * SizeOf(panel_dtype);
  }
}

}  // namespace tensord::cpu
