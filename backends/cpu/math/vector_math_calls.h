#ifndef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_CALLS_H_
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_CALLS_H_

#include <array>

#include "absl/types/span.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The numbers of exp by a table of sixteen powers, for code that has its instructions in itself
// (vector_math_exp-inl.h). Static.
template <typename T>
struct ExpNumbers {
  T underflow = 0, far = 0, overflow = 0;
  T sixteenths_per_one = 0, rounder = 0, sixteenth_high = 0, sixteenth_low = 0;
  absl::Span<const T> poly;  // lowest degree first
  const T* powers = nullptr;
};

// The functions of vector_math on one vector each, for code that is made at run time: V f(V), or V f(V, V), with
// vectors of `vector_bytes` in registers as the machine's calling convention has them. The same bits as vector_math.
struct VectorMathCalls {
  int vector_bytes = 0;  // 64: AVX-512, 32: AVX2, 0: an instruction set that code is not made for
  std::array<const void*, kNumCoreOps> f32 = {};
  std::array<const void*, kNumCoreOps> f64 = {};

  const ExpNumbers<float>* exp_f32 = nullptr;  // where exp is computed like that
  const ExpNumbers<double>* exp_f64 = nullptr;

  // Returns null if there is none.
  const void* Find(CoreOp op, DType dtype) const;
};

// Returns the calls of this machine's best instruction set. The table lives for ever.
const VectorMathCalls& GetVectorMathCalls();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_CALLS_H_
