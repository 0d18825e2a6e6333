// The wire's gathers and scatters as they are, with StableHLO's attributes, checked before they are sent. Indices are
// I32 or I64. A gather clamps an index out of bounds, so that the slice fits; a scatter skips the whole update.
#ifndef TENSORD_GATHER_SCATTER_H_
#define TENSORD_GATHER_SCATTER_H_

#include <vector>

#include "tensord/message_names.h"
#include "tensord/tensor.h"

namespace tensord::client {

// Returns a slice of x of attributes.slice_sizes() for each index vector.
Tensor Gather(const TensorArg& x, const TensorArg& start_indices, const v1::Gather& attributes);

// The same for slice sizes that are computed from shapes: attributes.slice_sizes() stays empty, and operand i of a size
// is the i-th of x, start_indices, sources….
Tensor GatherDynamicSliceSizes(const TensorArg& x, const TensorArg& start_indices, const v1::Gather& attributes,
                               const std::vector<v1::DimExpr>& slice_sizes, const std::vector<Tensor>& sources = {});

// x with a window of `updates` combined into it for each index vector. With COMBINER_SET and equal indices the last
// update in index order, which is column-major, wins.
Tensor Scatter(const TensorArg& x, const TensorArg& scatter_indices, const TensorArg& updates,
               const v1::Scatter& attributes);

}  // namespace tensord::client

#endif  // TENSORD_GATHER_SCATTER_H_
