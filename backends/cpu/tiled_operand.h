#ifndef TENSORD_BACKENDS_CPU_TILED_OPERAND_H_
#define TENSORD_BACKENDS_CPU_TILED_OPERAND_H_

#include <cstdint>

#include "backends/cpu/dot_axes.h"
#include "backends/cpu/gemm_tiles.h"
#include "backends/cpu/padded_lines.h"

namespace tensord::cpu {

// Where the element of a flat index lies, the first axis the fastest; in elements.
int64_t OffsetOf(DotSide side, const DotAxisList& axes, int64_t index);

// How one operand of a TiledGemm is read. A value, thread-compatible; Pack does not allocate and cannot fail.
struct TiledOperand {
  DotSide side = kLhs;
  int64_t element_bytes = 1;
  DotAxisList lines;  // rows of lhs, columns of rhs
  DotAxisList terms;
  DotAxisList batch;
  int64_t width = 0;  // of a panel
  bool is_packed = true;
  PaddedLines padded;  // where it is read with zeros around it

  // Lines beside each other of one panel, or of several where they lie side by side, for the terms of a box. `matrix` is
  // the first element of the product.
  void Pack(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines, int64_t first_term,
            int64_t num_terms, char* panels) const;

 private:
  void PackRunsOfTerms(const GemmTiles& tiles, const char* from, PanelPiece piece, int64_t first_term,
                       int64_t num_terms, char* panels) const;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_TILED_OPERAND_H_
