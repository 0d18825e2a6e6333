// Reductions, as Sum(x, 0) or Sum(x, {0, -1}). Without axes over all of them; with keep_dims reduced axes stay with
// size 1, so that the result broadcasts against the operand.
#ifndef TENSORD_REDUCTION_H_
#define TENSORD_REDUCTION_H_

#include "tensord/axes.h"
#include "tensord/tensor.h"

namespace tensord::client {

Tensor Sum(const TensorArg& x);
Tensor Sum(const TensorArg& x, const Axes& axes, bool keep_dims = false);
Tensor Product(const TensorArg& x);
Tensor Product(const TensorArg& x, const Axes& axes, bool keep_dims = false);
// Returns the greatest element; over no element -inf, the least integer, or false. NaN wins.
Tensor Max(const TensorArg& x);
Tensor Max(const TensorArg& x, const Axes& axes, bool keep_dims = false);
Tensor Min(const TensorArg& x);
Tensor Min(const TensorArg& x, const Axes& axes, bool keep_dims = false);
// BOOL.
Tensor All(const TensorArg& x);
Tensor All(const TensorArg& x, const Axes& axes, bool keep_dims = false);
Tensor Any(const TensorArg& x);
Tensor Any(const TensorArg& x, const Axes& axes, bool keep_dims = false);

// Sum divided by count, of floating-point and complex tensors; F16 and BF16 are summed as F32. Over no element: NaN.
Tensor Mean(const TensorArg& x);
Tensor Mean(const TensorArg& x, const Axes& axes, bool keep_dims = false);

}  // namespace tensord::client

#endif  // TENSORD_REDUCTION_H_
