#ifndef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_H_
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_H_

#include <cstdint>

namespace tensord::cpu {

// Elementary functions over contiguous arrays of float or double, compiled for every instruction set that Highway knows
// and chosen at run time. Arrays need no alignment; y may be one of the operands. The result of an element depends on
// that element alone, not on its place or on n. At most 4 ulp off, and the IEEE value at NaN, ±inf, ±0, overflow and
// underflow.
template <typename T>
struct VectorMath {
  using Unary = void (*)(const T* x, T* y, int64_t n);
  using Binary = void (*)(const T* a, const T* b, T* y, int64_t n);

  Unary exp;
  Unary expm1;
  Unary log;
  Unary log1p;
  Unary logistic;
  Unary tanh;
  Unary sin;
  Unary cos;
  Unary tan;
  Unary sqrt;
  Unary rsqrt;  // 1 / sqrt(x), both rounded
  Unary erf;
  Unary cbrt;
  Unary sinh;
  Unary cosh;
  Unary asin;
  Unary acos;
  Unary atan;
  Unary asinh;
  Unary acosh;
  Unary atanh;
  Unary log2;   // exact of powers of two
  Unary log10;  // exact of powers of ten
  Unary exp2;   // exact of whole numbers
  Binary pow;
  Binary atan2;
  Binary maximum;    // NaN wins, +0 is above -0
  Binary minimum;    // likewise
  Binary remainder;  // exact, with the sign of a
};

// Return the tables of this machine's best instruction set. The tables live for ever.
const VectorMath<float>& VectorMathF32();
const VectorMath<double>& VectorMathF64();

template <typename T>
const VectorMath<T>& GetVectorMath() {
  if constexpr (sizeof(T) == 4) {
    return VectorMathF32();
  } else {
    return VectorMathF64();
  }
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_H_
