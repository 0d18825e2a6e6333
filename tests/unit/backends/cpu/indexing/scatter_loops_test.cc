#include "backends/cpu/indexing/scatter_loops.h"

#include <random>
#include <vector>

#include "engine/ops/scalar/scalar_math.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

namespace tensord::cpu {
namespace {

// A product of complex numbers must be fused or not whatever its place in a row.
template <typename T>
void ExpectPlainProducts(DType dtype) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> number(-3, 3);
  for (int64_t count = 0; count < 20; ++count) {
    for (const int64_t dst_step : {1, 3}) {
      for (const int64_t update_step : {1, 2}) {
        std::vector<T> updates(static_cast<size_t>(count * update_step + 1)), dst(static_cast<size_t>(count * 3 + 1));
        for (T& x : updates)
          x = T(static_cast<typename T::value_type>(number(random)),
                static_cast<typename T::value_type>(number(random)));
        for (T& x : dst)
          x = T(static_cast<typename T::value_type>(number(random)),
                static_cast<typename T::value_type>(number(random)));
        std::vector<T> want = dst, each = dst;
        std::vector<int64_t> into, from;
        for (int64_t i = 0; i < count; ++i) {
          T& x = want[static_cast<size_t>(i * dst_step)];
          x = scalar::Multiply{}(x, updates[static_cast<size_t>(i * update_step)]);
          into.push_back(i * dst_step);
          from.push_back(i * update_step);
        }
        const ScatterLoops loops = GetScatterLoops(ScatterCombiner::kMultiply, dtype);
        loops.row(dst.data(), updates.data(), count, dst_step, update_step);
        loops.each(each.data(), updates.data(), into.data(), from.data(), count);
        EXPECT_EQ(dst, want) << count << " elements, steps " << dst_step << " and " << update_step;
        EXPECT_EQ(each, want);
      }
    }
  }
}

TEST(ScatterLoopsTest, ComplexProductsAreNotFusedAnywhere) {
  ForEachInstructionSet([](const char*) {
    ExpectPlainProducts<Complex64>(DType::kC64);
    ExpectPlainProducts<Complex128>(DType::kC128);
  });
}

}  // namespace
}  // namespace tensord::cpu
