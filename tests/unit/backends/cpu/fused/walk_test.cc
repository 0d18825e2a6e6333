#include "backends/cpu/fused/walk.h"

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

// Every range of points of walks of any axes, short ones above all, against the place of each point by itself.
template <typename T>
void ExpectGathers(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  std::vector<Walk::Axis> axes;
  int64_t points = 1, last = 0;
  for (int64_t d = 1 + below(5); d-- > 0;) {
    axes.push_back({1 + below(5), below(7)});
    points *= axes.back().size;
    last += (axes.back().size - 1) * axes.back().stride;
  }
  std::vector<T> base(static_cast<size_t>(last) + 1);
  std::iota(base.begin(), base.end(), T(1));
  std::vector<T> want;
  for (int64_t point = 0; point < points; ++point) {
    int64_t rest = point, offset = 0;
    for (const Walk::Axis& axis : axes) {
      offset += rest % axis.size * axis.stride;
      rest /= axis.size;
    }
    want.push_back(base[static_cast<size_t>(offset)]);
  }
  const Walk walk(axes);
  for (int trial = 0; trial < 20; ++trial) {
    const int64_t begin = below(points), n = below(points - begin + 1);
    std::vector<T> got(static_cast<size_t>(n) + 1, T(0));
    GatherPoints(walk, sizeof(T), base.data(), begin, n, got.data());
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(got[static_cast<size_t>(i)], want[static_cast<size_t>(begin + i)]) << "seed " << seed << " point " << i;
    }
    ASSERT_EQ(got.back(), T(0));  // nothing is written behind
  }
}

TEST(WalkTest, GathersAnyRangeOfPoints) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ExpectGathers<uint64_t>(seed);
    ExpectGathers<uint16_t>(seed);
  }
}

}  // namespace
}  // namespace tensord::cpu
