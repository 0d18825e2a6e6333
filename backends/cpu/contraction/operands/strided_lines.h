#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_STRIDED_LINES_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_STRIDED_LINES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/matmul/tiles.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Lines and terms of a matrix read through strides, which may be 0. Borrows the axes.
struct StridedLines {
  DotSide side = kLhs;
  DType dtype = DType::kInvalid;        // as it lies
  DType panel_dtype = DType::kInvalid;  // as it is multiplied: 16-bit floats are widened
  absl::Span<const DotAxis> lines;      // neither is empty
  absl::Span<const DotAxis> terms;
  bool pairs_terms = false;  // BF16 stays as it is, two terms an element of the panel; runs of terms are of even length

  // Lines beside each other of one panel, or of several where they lie side by side. `matrix` is the element of line 0
  // and term 0. Does not allocate and cannot fail.
  void Pack(const GemmTiles& tiles, const char* matrix, int64_t first_line, int64_t num_lines, int64_t first_term,
            int64_t num_terms, PanelPlace place) const;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_STRIDED_LINES_H_
