#ifndef TENSORD_BACKENDS_CPU_VECTOR_MATH_CALLS_H_
#define TENSORD_BACKENDS_CPU_VECTOR_MATH_CALLS_H_

#include <array>

#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The functions of vector_math on one vector each, for code that is made at run time: V f(V), or V f(V, V), with
// vectors of `vector_bytes` in registers as the machine's calling convention has them. The same bits as vector_math.
struct VectorMathCalls {
  int vector_bytes = 0;  // 64: AVX-512, 32: AVX2, 0: an instruction set that code is not made for
  std::array<const void*, kNumCoreOps> f32 = {};
  std::array<const void*, kNumCoreOps> f64 = {};

  // Null where there is none.
  const void* Find(CoreOp op, DType dtype) const;
};

// Those of the best instruction set of this machine. The table lives for ever.
const VectorMathCalls& GetVectorMathCalls();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_VECTOR_MATH_CALLS_H_
