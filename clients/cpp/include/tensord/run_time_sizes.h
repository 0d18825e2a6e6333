// Sizes as values, and values as sizes. A size that is known only when the graph runs is kRunTimeSize in a tensor's
// shape. Elementwise operations, reductions, transpositions, products and concatenation take such tensors; operations
// that need the number (Reshape, Slice, BroadcastTo) refuse them.
#ifndef TENSORD_RUN_TIME_SIZES_H_
#define TENSORD_RUN_TIME_SIZES_H_

#include <cstdint>

#include "tensord/tensor.h"

namespace tensord::client {

// Returns the size of an axis, as an I64 of rank 0.
Tensor ShapeOf(const Tensor& x, int64_t axis);

// Returns the first clamp(size, 0, size of the axis) entries of x along `axis`; `size` is an I32 or I64 of rank 0. The
// result's size along the axis is kRunTimeSize.
Tensor DynamicTruncate(const Tensor& x, const Tensor& size, int64_t axis = 0);

// Returns x with zeros behind its last entry along `axis`, up to the size of that axis in `reference`; a longer x stays
// as it is. Only that size of the reference is used; its dtype and rank may be others.
Tensor PadToMatch(const Tensor& x, const Tensor& reference, int64_t axis = 0);

}  // namespace tensord::client

#endif  // TENSORD_RUN_TIME_SIZES_H_
