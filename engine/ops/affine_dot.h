#ifndef TENSORD_ENGINE_OPS_AFFINE_DOT_H_
#define TENSORD_ENGINE_OPS_AFFINE_DOT_H_

#include <cstddef>
#include <cstdint>

#include "engine/ir/op_def.h"

namespace tensord {

// A contraction that reads its operands at affine functions of the indices: a product of windows of a tensor that are
// never made. Of the family "engine": the pass `read_windows` makes it, for known sizes.
//
// Attributes: `sizes` of the indices, at least 1. The first are those of the result, the fastest first, and the last
// `num_summed` are summed over. Along axis `a` of an operand of rank r the element is
//   starts[a] + steps[a] * index[0] + steps[r + a] * index[1] + …
// and it is 0 if the operand has no such element. Steps are not negative. The result's elements are given the `shape`.
// Dtypes and conjugations as in dot_general.
const OpDef& AffineDotOp();
inline bool IsAffineDot(const OpDef& op) { return &op == &AffineDotOp(); }

// The reading of one operand.
struct AffineRead {
  const std::vector<int64_t>& starts;  // by axis
  const std::vector<int64_t>& steps;   // by index, then axis

  int64_t Step(size_t index, size_t axis) const { return steps[index * starts.size() + axis]; }
};
AffineRead LhsReadOf(const Attributes& attrs);
AffineRead RhsReadOf(const Attributes& attrs);

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_AFFINE_DOT_H_
