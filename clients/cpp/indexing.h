// Operations that read or write at positions known when the graph runs. Indices are I32 or I64, and the server clamps
// them into bounds, except where an operation says otherwise.
#ifndef TENSORD_CLIENTS_CPP_INDEXING_H_
#define TENSORD_CLIENTS_CPP_INDEXING_H_

#include <cstdint>
#include <vector>

#include "clients/cpp/tensor.h"

namespace tensord::client {

// Entries of x along `axis` at `indices`, whose axes take the place of that axis.
Tensor Take(const Tensor& x, const Tensor& indices, int64_t axis = 0);

// The window of these sizes that starts at `start`: one index for each axis of x, shifted so that the window fits.
Tensor DynamicSlice(const Tensor& x, const Tensor& start, const std::vector<int64_t>& sizes);
// x with the window at `start` replaced by `update`, shifted so that it fits.
Tensor DynamicUpdateSlice(const Tensor& x, const Tensor& update, const Tensor& start);

// As StableHLO's, with the attributes as the wire has them.
Tensor Gather(const Tensor& x, const Tensor& start_indices, const v1::Gather& attributes);
Tensor Scatter(const Tensor& x, const Tensor& scatter_indices, const Tensor& updates, const v1::Scatter& attributes);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_INDEXING_H_
