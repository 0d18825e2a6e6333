#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_MATH_ARGUMENTS_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_MATH_ARGUMENTS_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "engine/ops/core_ops.h"

namespace tensord {

// Arguments on which an elementwise op is measured; y is empty for a unary op. The same ones for the same seed.
template <typename T>
struct MathArguments {
  std::vector<T> x;
  std::vector<T> y;
};

// For T float or double: every edge (for binary ops every pair of edges), then `count` random ones: any bits, any
// exponent, the op's usual range, beside 1, beside multiples of pi/2, subnormal; for pow, atan2 and remainder also
// pairs whose results are at the limits.
template <typename T>
MathArguments<T> RealMathArguments(CoreOp op, int64_t count, uint64_t seed);

// For T float or double: `count` random complex ones: of ordinary size, with parts of different exponents, beside
// zeros, poles and branch points of the functions, and (but for pow) of any exponents; results may overflow and
// underflow.
template <typename T>
MathArguments<std::complex<T>> ComplexMathArguments(CoreOp op, int64_t count, uint64_t seed);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_MATH_ARGUMENTS_H_
