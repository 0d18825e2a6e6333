// Sizes as values, and values as sizes. A size that only the run knows is kRunTimeSize or a symbol in a tensor's shape
// (shape.h). Elementwise operations, reductions, transpositions, products and concatenation take such tensors. A size
// that is given to an operation (Reshape, BroadcastTo) is a number or a symbol; Slice takes numbers.
#ifndef TENSORD_RUN_TIME_SIZES_H_
#define TENSORD_RUN_TIME_SIZES_H_

#include <cstdint>

#include "tensord/tensor.h"

namespace tensord::client {

// Returns the size of an axis, as an I64 of rank 0.
Tensor ShapeOf(const TensorArg& x, int64_t axis);

// Returns the first clamp(size, 0, size of the axis) entries of x along `axis`; `size` is an I32 or I64 of rank 0. The
// result's size along the axis is kRunTimeSize.
Tensor DynamicTruncate(const TensorArg& x, const TensorArg& size, int64_t axis = 0);

// Returns x with zeros behind its last entry along `axis`, up to the size of that axis in `reference`; a longer x stays
// as it is. Only that size of the reference is used; its dtype and rank may be others.
Tensor PadToMatch(const TensorArg& x, const TensorArg& reference, int64_t axis = 0);

}  // namespace tensord::client

#endif  // TENSORD_RUN_TIME_SIZES_H_
