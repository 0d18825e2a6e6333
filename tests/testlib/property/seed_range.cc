#include "tests/testlib/property/seed_range.h"

#include <cstdlib>

#include "absl/strings/numbers.h"

namespace tensord::property {
namespace {

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  int64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace

SeedRange ChosenSeeds(SeedRange otherwise) {
  return {.first = static_cast<uint64_t>(FromEnvironment("TENSORD_SEED", static_cast<int64_t>(otherwise.first))),
          .count = FromEnvironment("TENSORD_GRAPHS", otherwise.count)};
}

}  // namespace tensord::property
