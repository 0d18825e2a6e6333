#ifndef TENSORD_CLIENTS_LOAD_RANDOM_TENSOR_H_
#define TENSORD_CLIENTS_LOAD_RANDOM_TENSOR_H_

#include "absl/status/statusor.h"
#include "clients/load/split_mix.h"
#include "tensord/host_tensor.h"

namespace tensord::load {

// Elements in [-1, 1), both parts of complex ones; integers in [0, 8), which may serve as indices; BOOL either.
// INVALID_ARGUMENT if the shape is none, or its bytes do not fit into memory's numbers.
absl::StatusOr<client::HostTensor> RandomTensor(client::DType dtype, const client::Shape& shape, SplitMix* random);

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_RANDOM_TENSOR_H_
