#ifndef TENSORD_ENGINE_OPS_DERIVATIVES_EXTREME_TANGENT_H_
#define TENSORD_ENGINE_OPS_DERIVATIVES_EXTREME_TANGENT_H_

#include <cstdint>
#include <vector>

#include "engine/ir/derivative_builder.h"
#include "engine/tensor/dtype.h"

namespace tensord {

// A value, its tangent and their shape.
struct DualTensor {
  ValueId x, t;
  SymbolicShape shape;
};

// Writes the tangent of the maximum or minimum `result` of an operand over the axes `reduced`. All elements equal to
// the result share in equal parts.
ValueId ExtremeTangent(DerivativeBuilder& graph, const DualTensor& operand, DType dtype, ValueId result,
                       const SymbolicShape& result_shape, const std::vector<int64_t>& reduced);

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_DERIVATIVES_EXTREME_TANGENT_H_
