#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_TILED_OPERAND_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_TILED_OPERAND_H_

#include <cstdint>

#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/contraction/operands/factored_lines.h"
#include "backends/cpu/contraction/operands/padded_lines.h"
#include "backends/cpu/contraction/operands/window_rows.h"
#include "backends/cpu/matmul/tiles.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// One operand of a TiledGemm and the way in which it is read. A value, thread-compatible; Pack does not allocate and
// cannot fail.
struct TiledOperand {
  // Windows that slide along lines: the terms of an axis read the elements of lines a fixed number further on. With a
  // slide, `terms` has all axes but that one, the slowest, and `lines` is longer by the axis's reach.
  struct Slide {
    int64_t count = 1;  // the size of the axis
    int64_t lines = 0;  // from one of it to the next
    bool is_used() const { return count > 1; }
    int64_t reach() const { return (count - 1) * lines; }
  };

  DotSide side = kLhs;
  DType dtype = DType::kInvalid;        // as it lies
  DType panel_dtype = DType::kInvalid;  // as it is multiplied: 16-bit floats are widened
  DotAxisList lines;                    // rows of lhs, columns of rhs
  DotAxisList terms;
  DotAxisList batch;
  int64_t width = 0;  // of a panel
  bool is_packed = true;
  bool is_widened = false;   // 16-bit floats of a small matrix, which lie in F32 as they did, and is_packed is false
  bool pairs_terms = false;  // as of StridedLines: terms of panels are pairs of those of the matrix
  PaddedLines padded;        // where it is read with zeros around it
  FactoredLines factored;    // where it is multiplied as it is packed
  Slide slide;
  WindowRows windows;  // where rows are read where they lie, and is_packed is false

  // Returns the slide of the last axes of lines and terms, where it leaves less to pack; and these axes with it.
  static Slide FindSlide(DotSide side, DotAxisList* lines, DotAxisList* terms);

  // Lines beside each other of one panel, or of several where they lie side by side, for the terms of a box. `matrix`
  // is the first element of the product.
  void Pack(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines, int64_t first_term,
            int64_t num_terms, char* panels) const;

  // Packs all terms of sliding lines, for `num_lines` lines and the lines within reach: term by term, SlideStep
  // elements apart.
  void PackSlide(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines, char* packed) const;
  int64_t SlideStep(int64_t num_lines) const;

 private:
  void PackTo(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines, int64_t first_term,
              int64_t num_terms, PanelPlace place) const;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_TILED_OPERAND_H_
