#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_ELEMENT_RADIUS_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_ELEMENT_RADIUS_H_

#include <limits>

#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord::property {

inline constexpr double kUnknown = std::numeric_limits<double>::infinity();

// A number that a correct program may have instead of `value`: each part differs by at most `radius`. A real number has
// the imaginary part 0.
struct Uncertain {
  Complex128 value;
  double radius = 0;
};

// The radius of one element of the result `y` of an elementwise op. `dtype` is that of the operands.
double UnaryRadius(CoreOp op, DType dtype, Uncertain x, Complex128 y);
double BinaryRadius(CoreOp op, DType dtype, Uncertain a, Uncertain b, Complex128 y);
double CompareRadius(Uncertain a, Uncertain b);
double ClampRadius(DType dtype, Uncertain low, Uncertain x, Uncertain high);
double ConvertRadius(DType from, DType to, Uncertain x, Complex128 y);

// The largest finite number of a float dtype, and the bits of its significand; of the parts of a complex one.
double LargestOf(DType dtype);
int SignificandBits(DType dtype);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_ELEMENT_RADIUS_H_
