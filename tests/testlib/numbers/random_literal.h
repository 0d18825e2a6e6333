#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_RANDOM_LITERAL_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_RANDOM_LITERAL_H_

#include <random>

#include "engine/tensor/literal.h"

namespace tensord {

enum class Values : uint8_t {
  kModest,    // magnitudes up to about 4: nothing overflows soon
  kEdges,     // NaN, ±infinity, ±0, subnormals, the largest and least numbers, mixed with modest ones
  kIntegers,  // whole numbers from -3 to 3: float arithmetic on them is exact
  kNearOne,   // moduli from 0.98 to 1.02, any sign or angle: long products stay finite
};

Literal RandomLiteral(const ConcreteType& type, Values values, std::mt19937_64* random);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_RANDOM_LITERAL_H_
