// Operations that read or write at positions known when the graph runs. Indices are I32 or I64, and count from the
// front. An index out of bounds is clamped if the operation reads or replaces a window, and skipped if it puts.
#ifndef TENSORD_INDEXING_H_
#define TENSORD_INDEXING_H_

#include <cstdint>
#include <vector>

#include "tensord/message_names.h"
#include "tensord/tensor.h"

namespace tensord::client {

// Returns the entries of x along `axis` at `indices`, whose axes take the place of that axis.
Tensor Take(const TensorArg& x, const TensorArg& indices, int64_t axis = 0);
// result[…, i, …] = x[…, indices[…, i, …], …] along `axis`. x and indices have equal sizes on all other axes.
Tensor TakeAlongAxis(const TensorArg& x, const TensorArg& indices, int64_t axis);

// x with `updates`, of the shape that Take(x, indices, axis) has, combined into the entries at `indices`. An index that
// is out of bounds is skipped; with COMBINER_SET and equal indices the last one in column-major order wins.
Tensor Put(const TensorArg& x, const TensorArg& indices, const TensorArg& updates, v1::Scatter_Combiner combiner,
           int64_t axis = 0);

// Returns the window of these sizes that starts at `start`: one index for each axis of x, shifted so that the window
// fits.
Tensor DynamicSlice(const TensorArg& x, const TensorArg& start, const std::vector<int64_t>& sizes);
// x with the window at `start` replaced by `update`, shifted so that it fits.
Tensor DynamicUpdateSlice(const TensorArg& x, const TensorArg& update, const TensorArg& start);

}  // namespace tensord::client

#endif  // TENSORD_INDEXING_H_
