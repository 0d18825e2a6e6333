#ifndef TENSORD_BACKENDS_CPU_MATMUL_TILES_H_
#define TENSORD_BACKENDS_CPU_MATMUL_TILES_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Rows of a that are windows of a tensor, no matrix, and are read in place. Terms come in runs. Row `i` of a vector
// lies i elements after the vector's offset, for each piece of the vector, as far as its mask has a bit; for a run, so
// many elements further. Lanes without a bit in any piece are 0.
struct TiledRows {
  int64_t pieces = 0;  // of a vector: 1 or 2; 0: a is read by steps
  int64_t run_terms = 0;
  int64_t first_term = 0;  // of its run
  const int64_t* run_offsets = nullptr;
  const int64_t* offsets = nullptr;  // by vector and piece
  const uint16_t* masks = nullptr;   // by vector, run and piece
  int64_t masks_step = 0;            // from vector to vector
};

// A block c = a·b or c += a·b, made tile by tile. Panels of a follow each other; each has as many rows as a tile, side
// by side for each term of the sums. Panels of b have columns in the same way. A packed panel is filled up with zeros
// to its whole width. Steps count elements.
struct TiledBlock {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;  // at least 1
  const void* a = nullptr;
  int64_t a_term_step = 0;
  int64_t a_panel_step = 0;
  int64_t run_terms = 0;  // after as many terms of a the next begin a_run_step after the first of these; 0: none do
  int64_t a_run_step = 0;
  TiledRows rows;  // where it is used, a is the element that offsets start from
  const void* b = nullptr;
  int64_t b_term_step = 0;
  int64_t b_column_step = 0;
  int64_t b_panel_step = 0;
  void* c = nullptr;
  int64_t c_column_step = 0;  // rows of c lie side by side
  bool packs_a = false;       // else nothing is read beyond the rows that there are
  bool packs_b = false;       // term by term, the columns side by side
  bool accumulates = false;
};

inline constexpr int64_t kMaxPanelWidth = 64;  // lines: three vectors of 16 numbers, rounded up

// The distance at which memory is asked for ahead of the packed term, if terms lie too far apart for the processor to
// see.
inline constexpr int64_t kTermsAhead = 48;

// A piece of a matrix that goes into part of one panel, or of several: element (line, term) is
// offsets[line] + term * term_stride elements from `from`. Lines are rows of a or columns of b.
struct PanelPiece {
  const void* from = nullptr;
  const int64_t* offsets = nullptr;  // null: lines lie side by side
  int64_t lines = 0;                 // more than a panel has only side by side
  int64_t width = 0;                 // of a panel; lines beyond those that there are become zeros
  int64_t panel_step = 0;            // elements from panel to panel
  int64_t term_step = 0;             // elements from term to term in a panel, at least its width
  int64_t terms = 0;
  int64_t term_stride = 0;
};

// The place for packed lines: side by side for each term.
struct PanelPlace {
  char* panel = nullptr;
  int64_t width = 0;      // lines beyond those that there are become zeros
  int64_t term_step = 0;  // elements from term to term, at least the width
};

// The loops of matrix products in F32 and F64 for the machine's best instruction set: a tile of c is held in registers
// over all terms of a block [Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008; Van Zee
// and van de Geijn, BLIS, 2015].
struct GemmTiles {
  int64_t rows = 0;  // of a tile; 0 where there are no loops for the dtype or the machine
  int64_t columns = 0;
  int64_t window_lanes = 0;  // of a vector of TiledRows; 0 where windows are better packed
  // The largest matrix that is read in place as fast as panels are; for b, also larger ones whose terms lie side by
  // side if reads_columns.
  int64_t unpacked_bytes = 0;
  bool reads_columns = false;
  void (*multiply)(const TiledBlock& block) = nullptr;
  void (*pack)(const PanelPiece& piece, void* panel) = nullptr;
  void (*scale)(const void* by, int64_t elements, void* panel) = nullptr;  // element by element
};

GemmTiles GetGemmTiles(DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATMUL_TILES_H_
