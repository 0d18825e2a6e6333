#ifndef TENSORD_ENGINE_AUTODIFF_SPLIT_H_
#define TENSORD_ENGINE_AUTODIFF_SPLIT_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "engine/autodiff/differentiate.h"
#include "engine/autodiff/input_types.h"
#include "engine/ir/derivative_builder.h"
#include "engine/ir/graph.h"

namespace tensord {

// The parts of a derivative: counts from the front, the rest belongs to the backward pass.
struct DerivativeParts {
  size_t inputs = 0;   // the source's; cotangents follow
  size_t nodes = 0;    // of the forward pass
  size_t outputs = 0;  // the source's
};

// Splits a derivative with all its nodes into its passes. Nodes without operands that both passes read are in both.
// `types` made the types of the cotangents; `builder` is that of the derivative, and names the residuals.
absl::StatusOr<SplitDerivative> Split(const Graph& derivative, const DerivativeParts& parts, InputTypes* types,
                                      DerivativeBuilder* builder);

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_SPLIT_H_
