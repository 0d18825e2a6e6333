#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_SEED_RANGE_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_SEED_RANGE_H_

#include <cstdint>

namespace tensord::property {

// The random cases of a test: the seeds first … first + count - 1.
struct SeedRange {
  uint64_t first = 0;
  int64_t count = 0;
};

// TENSORD_SEED and TENSORD_GRAPHS of the environment, by default these.
SeedRange ChosenSeeds(SeedRange otherwise);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_SEED_RANGE_H_
