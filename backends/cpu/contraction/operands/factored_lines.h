#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_FACTORED_LINES_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_FACTORED_LINES_H_

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/matmul/tiles.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A tensor that is never made: the element by element product of its factors, from the first to the last. A contraction
// sees the strides of the dense tensor.
struct FactoredTensor {
  struct Factor {
    int64_t offset = 0;                       // of index 0, in elements
    absl::InlinedVector<int64_t, 6> strides;  // one an axis; 0 along those that it repeats over
  };
  absl::InlinedVector<int64_t, 6> sizes;   // of the axes, the fastest first
  absl::InlinedVector<Factor, 2> factors;  // empty: the tensor is there
};

using FactoredTensors = std::array<FactoredTensor, 2>;                 // by side
using FactorAddresses = std::array<absl::Span<const char* const>, 2>;  // by side

// A packer of panels from factors: products of their elements, rounded once each.
//
// Immutable after construction, so thread-safe. Pack does not allocate and cannot fail.
class FactoredLines {
 public:
  FactoredLines() = default;
  // The axes are those of the contraction, and the factors' elements of its dtype.
  FactoredLines(DotSide side, const FactoredTensor& tensor, const DotAxisList& lines, const DotAxisList& terms,
                const DotAxisList& batch, DType dtype);

  bool is_used() const { return !factors_.empty(); }

  // Lines beside each other of one panel, and terms. `addresses` are those of the factors, `product` the index in the
  // batch.
  void Pack(const GemmTiles& tiles, absl::Span<const char* const> addresses, int64_t product, int64_t first_line,
            int64_t num_lines, int64_t first_term, int64_t num_terms, PanelPlace place) const;

 private:
  struct Factor {
    int64_t offset = 0;
    DotAxisList lines, terms, batch;
  };

  DotSide side_ = kLhs;
  DType dtype_ = DType::kInvalid;
  absl::InlinedVector<Factor, 2> factors_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_FACTORED_LINES_H_
