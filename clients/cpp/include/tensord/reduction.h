// Reductions. Without axes over all of them; with keep_dims reduced axes stay with size 1, so that the result
// broadcasts against the operand.
#ifndef TENSORD_REDUCTION_H_
#define TENSORD_REDUCTION_H_

#include <cstdint>
#include <vector>

#include "tensord/tensor.h"

namespace tensord::client {

Tensor Sum(const Tensor& x);
Tensor Sum(const Tensor& x, const std::vector<int64_t>& axes, bool keep_dims = false);
Tensor Product(const Tensor& x);
Tensor Product(const Tensor& x, const std::vector<int64_t>& axes, bool keep_dims = false);
// Returns the greatest element; over no element -inf, the least integer, or false. NaN wins.
Tensor Max(const Tensor& x);
Tensor Max(const Tensor& x, const std::vector<int64_t>& axes, bool keep_dims = false);
Tensor Min(const Tensor& x);
Tensor Min(const Tensor& x, const std::vector<int64_t>& axes, bool keep_dims = false);
// BOOL.
Tensor All(const Tensor& x);
Tensor All(const Tensor& x, const std::vector<int64_t>& axes, bool keep_dims = false);
Tensor Any(const Tensor& x);
Tensor Any(const Tensor& x, const std::vector<int64_t>& axes, bool keep_dims = false);

// Sum divided by count, of floating-point and complex tensors; F16 and BF16 are summed as F32. Over no element: NaN.
Tensor Mean(const Tensor& x);
Tensor Mean(const Tensor& x, const std::vector<int64_t>& axes, bool keep_dims = false);

}  // namespace tensord::client

#endif  // TENSORD_REDUCTION_H_
