// Operations that move elements and compute nothing. Axes count from the end where they are negative. Data is thought
// of in NumPy's way, row-major, where an operation reads elements in sequence; MemoryOrder says otherwise.
#ifndef TENSORD_STRUCTURAL_H_
#define TENSORD_STRUCTURAL_H_

#include <cstdint>
#include <vector>

#include "tensord/axes.h"
#include "tensord/source_location.h"
#include "tensord/tensor.h"

namespace tensord::client {

// 0, 1, 2, … along `axis`, the same along every other one.
Tensor Iota(DType dtype, Shape shape, int64_t axis = 0, const SourceLocation& place = SourceLocation::current());
// One value everywhere.
Tensor Full(Shape shape, const Operand& value, DType dtype);

// result.shape[i] = x.shape[permutation[i]]; without a permutation the axes are reversed.
Tensor Transpose(const TensorArg& x);
Tensor Transpose(const TensorArg& x, const std::vector<int64_t>& permutation);

// Returns the same elements in the same sequence under another shape; one of its dimensions may be -1: the rest.
Tensor Reshape(const TensorArg& x, const Shape& shape, MemoryOrder order = MemoryOrder::kRowMajor);
// Inserts axes of size 1, at these positions of the result.
Tensor ExpandDims(const TensorArg& x, const Axes& axes);
// Removes axes, which must have size 1.
Tensor Squeeze(const TensorArg& x, const Axes& axes);

// Repeats x along new leading axes and axes of size 1, as NumPy does.
Tensor BroadcastTo(const TensorArg& x, const Shape& shape);
// The same for a shape with run-time sizes: each is that of the axis of `sources` (or of x) that aligns with it.
Tensor BroadcastLike(const TensorArg& x, const Shape& shape, const std::vector<Tensor>& sources);
// Axis i of x becomes axis dimensions[i] of the result, and is repeated where its size is 1.
Tensor BroadcastInDim(const TensorArg& x, const Shape& shape, const std::vector<int64_t>& dimensions);

Tensor Concatenate(const std::vector<Tensor>& tensors, int64_t axis = 0,
                   const SourceLocation& place = SourceLocation::current());
Tensor Reverse(const TensorArg& x, const Axes& axes);
// Elements start, start + stride, … before limit, for each axis. Without strides all are 1.
Tensor Slice(const TensorArg& x, const std::vector<int64_t>& start, const std::vector<int64_t>& limit,
             const std::vector<int64_t>& strides = {});
// Puts `value` around x, negative edges crop, and between its elements. Without interior all are 0.
Tensor Pad(const TensorArg& x, const Operand& value, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
           const std::vector<int64_t>& interior = {});

// Returns the diagonal of two axes of one size; axis_b is removed.
Tensor ExtractDiag(const TensorArg& x, int64_t axis_a = 0, int64_t axis_b = 1);
// Puts axis_a of x on the diagonal of it and a new axis, which stands at position axis_b of the result; the rest is 0.
Tensor EmbedDiag(const TensorArg& x, int64_t axis_a = 0, int64_t axis_b = 1);
// Returns the triangle of the first two axes at and below (Tril), at and above (Triu) the diagonal; the rest is 0. The
// matrix is the first two axes, as on the wire: NumPy's is the last two.
Tensor Tril(const TensorArg& x, int64_t diagonal = 0);
Tensor Triu(const TensorArg& x, int64_t diagonal = 0);

}  // namespace tensord::client

#endif  // TENSORD_STRUCTURAL_H_
