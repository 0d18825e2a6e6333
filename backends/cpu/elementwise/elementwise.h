#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>

#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// An elementwise op of one dtype over contiguous arrays: out[i] = op(a[i], b[i]) for i in [0, n). A unary op does not
// read b. Arrays are aligned to their element. `out` may be `a` or `b` if the elements have the same size. The meaning
// is defined in engine/ops/scalar/scalar_math.h, the accuracy in vector_math.h.
using ElementwiseFunction = void (*)(const void* a, const void* b, void* out, int64_t n);

// Returns the routine of a unary or binary op on operands of `dtype`, for this machine's best instruction set; null if
// the op does not take that dtype.
ElementwiseFunction FindElementwise(CoreOp op, DType dtype);
ElementwiseFunction FindCompare(CompareDirection direction, DType dtype);

// Returns the number of elements that are worth a task of their own. Depends on nothing but op and dtype.
int64_t ElementsPerTask(CoreOp op, DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_H_
