#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_LITERAL_COMPARE_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_LITERAL_COMPARE_H_

#include <string>

#include "engine/tensor/literal.h"

namespace tensord {

// How far a value may be from the reference's. NaN equals NaN, infinities must be equal.
struct Tolerance {
  double ulps = 0;           // of the reference value, in the result's dtype
  double norm_relative = 0;  // of the largest finite magnitude of the reference tensor: for sums of products
  double least_norm = 0;     // what that is at least, where terms are larger than their sums
};

// Empty if `got` is close to `want`; else the first difference in words.
std::string Difference(const Literal& got, const Literal& want, const Tolerance& tolerance);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_LITERAL_COMPARE_H_
