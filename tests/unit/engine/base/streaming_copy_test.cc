#include "engine/base/streaming_copy.h"

#include <cstddef>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace tensord {
namespace {

TEST(StreamingCopyTest, EveryPlaceAndLengthAndNothingBeside) {
  std::mt19937 random(1);
  std::string bytes(1000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t from = 0; from < 3; ++from) {
    for (size_t to = 0; to < 65; ++to) {
      for (const size_t length : {0, 1, 63, 64, 65, 127, 128, 129, 500}) {
        const absl::string_view part = absl::string_view(bytes).substr(from, length);
        std::string copy(to + length + 70, '#');
        StreamingCopy(part, copy.data() + to);
        EXPECT_TRUE(copy == std::string(to, '#') + std::string(part) + std::string(70, '#')) << to << " " << length;
      }
    }
  }
}

}  // namespace
}  // namespace tensord
