#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_MATH_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_MATH_H_

#include "engine/ops/core_ops.h"
#include "tests/testlib/numbers/exact_complex.h"
#include "tests/testlib/numbers/exact_real.h"

namespace tensord {

// An elementwise op on floating-point elements, with far more digits than the op has. The second operand of a unary op
// does not count. A BOOL result is 0 or 1. Null if the op takes no such elements.
template <typename E>
using ExactReal = E (*)(E, E);
using ExactComplex = exact::WideComplex (*)(exact::WideComplex, exact::WideComplex);

template <typename E>  // double or exact::Wide
ExactReal<E> ExactRealOf(CoreOp op);
ExactComplex ExactComplexOf(CoreOp op);  // a real result is the real part

// A floating-point format: bits of the mantissa with the hidden one, and exponents as std::numeric_limits counts them.
struct FloatFormat {
  int digits = 0;
  int min_exponent = 0;
  int max_exponent = 0;
};
FloatFormat FormatOf(DType dtype);  // of a real floating-point dtype

// Distance of `value` in units of the last place of `exact` in the format; what is beyond the format counts as its
// first power of two that is. NaN if the kind is wrong: only one of them is NaN or infinite or zero beyond rounding,
// or a zero has the wrong sign.
template <typename E>
double UlpError(E value, E exact, const FloatFormat& format);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_MATH_H_
