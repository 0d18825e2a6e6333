#ifndef TENSORD_ENGINE_IR_DERIVATIVE_H_
#define TENSORD_ENGINE_IR_DERIVATIVE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "engine/ir/derivative_builder.h"
#include "engine/ir/op_def.h"

namespace tensord {

// Tells whether derivatives are taken with respect to values of the dtype, and of them: floats and complex numbers.
inline bool IsDifferentiable(DType dtype) {
  constexpr DTypeSet kDifferentiable = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kC64, DType::kC128};
  return kDifferentiable.Contains(dtype);
}

// A node whose results' tangents are asked for. A tangent has its value's dtype and shape; one that is not set is zero.
// The rule writes nodes that are linear in the tangents, and sets the tangents of wanted results; one that it leaves
// unset is zero. Called only if an operand has a tangent and a result of a differentiable dtype is wanted.
struct JvpCall {
  const OpDef& op;
  const Attributes& attrs;
  absl::Span<const ValueId> operands;
  absl::Span<const ValueId> results;
  absl::Span<const ValueId> tangents;  // by operand
  absl::Span<const bool> wanted;       // by result
  absl::Span<ValueId> result_tangents;
  DerivativeBuilder& graph;

  bool has(size_t operand) const { return tangents[operand].is_set(); }
};

// A node that is linear in some of its operands, and cotangents of its results, of which one at least is set. The rule
// sets the cotangents of the linear operands: the adjoint in the product Re(conj(a) b), so that for all tangents t
// Re<cotangents, node(t)> = Re<operand_cotangents, t>. One that it leaves unset is zero. Linear operands have types but
// no values here.
struct TransposeCall {
  const OpDef& op;
  const Attributes& attrs;
  absl::Span<const ValueId> operands;  // unset: linear
  absl::Span<const TensorType* const> operand_types;
  absl::Span<const TensorType* const> result_types;
  absl::Span<const ValueId> cotangents;  // by result
  absl::Span<ValueId> operand_cotangents;
  DerivativeBuilder& graph;

  bool is_linear(size_t operand) const { return !operands[operand].is_set(); }
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_DERIVATIVE_H_
