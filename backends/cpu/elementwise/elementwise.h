#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>

#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// An elementwise op of one dtype over contiguous arrays: out[i] = op(a[i], b[i]) for i in [0, n); b is unread where the
// op takes one operand. Arrays are aligned to their element. `out` may be `a` or `b` where the elements
// have the same size. The meaning is that of engine/ops/scalar/scalar_math.h, the accuracy that of vector_math.h.
using ElementwiseFunction = void (*)(const void* a, const void* b, void* out, int64_t n);

// The routine of a unary or binary op on operands of `dtype`, for the best instruction set of this machine; null where
// the op does not take that dtype.
ElementwiseFunction FindElementwise(CoreOp op, DType dtype);
ElementwiseFunction FindCompare(CompareDirection direction, DType dtype);

// How many elements are worth a task of their own. Depends on nothing but op and dtype.
int64_t ElementsPerTask(CoreOp op, DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_H_
