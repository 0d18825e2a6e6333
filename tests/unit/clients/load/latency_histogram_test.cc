#include "clients/load/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "clients/load/split_mix.h"
#include "gtest/gtest.h"

namespace tensord::load {
namespace {

int64_t Nanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

// Finds it by sorting, with the same meaning of a quantile.
int64_t ExactQuantile(const std::vector<int64_t>& sorted, double fraction) {
  const double rank = std::ceil(fraction * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(1.0, rank)) - 1];
}

TEST(LatencyHistogram, IsZeroWhileEmpty) {
  LatencyHistogram empty;
  EXPECT_EQ(empty.count(), 0);
  EXPECT_EQ(empty.Quantile(0.99), absl::ZeroDuration());
  EXPECT_EQ(empty.mean(), absl::ZeroDuration());
  empty.Merge(LatencyHistogram());
  EXPECT_EQ(empty.count(), 0);
  EXPECT_EQ(empty.largest(), absl::ZeroDuration());
}

TEST(LatencyHistogram, QuantilesAreWithinOnePercentOfThoseOfSorting) {
  SplitMix random(3);
  // Log-uniform from 1 ns to 10^13 ns; exponential about 100 us; two peaks far apart.
  const std::vector<double (*)(SplitMix&)> draws = {
      [](SplitMix& r) { return std::exp(r.Fraction() * std::log(1e13)); },
      [](SplitMix& r) { return -std::log1p(-r.Fraction()) * 1e5; },
      [](SplitMix& r) { return r.Fraction() < 0.98 ? 1e4 + r.Fraction() : 1e9 * (1 + r.Fraction()); }};
  for (const auto draw : draws) {
    LatencyHistogram histogram;
    std::vector<int64_t> values;
    for (int i = 0; i < 50'000; ++i) {
      values.push_back(static_cast<int64_t>(draw(random)));
      histogram.AddNanoseconds(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double fraction : {0.0, 0.001, 0.1, 0.5, 0.9, 0.98, 0.99, 0.999, 0.9999, 1.0}) {
      const auto exact = static_cast<double>(ExactQuantile(values, fraction));
      EXPECT_NEAR(static_cast<double>(Nanoseconds(histogram.Quantile(fraction))), exact, 0.01 * exact) << fraction;
    }
    EXPECT_EQ(Nanoseconds(histogram.smallest()), values.front());
    EXPECT_EQ(Nanoseconds(histogram.largest()), values.back());
    EXPECT_EQ(Nanoseconds(histogram.Quantile(1)), values.back());
  }
}

TEST(LatencyHistogram, EveryDurationIsWithinOnePercent) {
  for (int64_t value = 1; value < int64_t{1} << 45; value += 1 + value / 1000) {
    for (const int64_t around : {value - 1, value, value + 1}) {
      LatencyHistogram histogram;
      histogram.AddNanoseconds(around);
      histogram.AddNanoseconds(int64_t{1} << 46);  // so that the first is not the largest
      const auto found = static_cast<double>(Nanoseconds(histogram.Quantile(0.5)));
      ASSERT_NEAR(found, static_cast<double>(around), 0.01 * static_cast<double>(around));
    }
    if (value > 4096) value += value / 50;
  }
}

TEST(LatencyHistogram, MergingIsAddingToOne) {
  SplitMix random(5);
  LatencyHistogram all, parts[3];
  for (int i = 0; i < 3000; ++i) {
    const auto value = static_cast<int64_t>(random.Next() >> (16 + i % 40));
    all.AddNanoseconds(value);
    parts[i % 3].AddNanoseconds(value);
  }
  LatencyHistogram merged;
  for (const LatencyHistogram& part : parts) merged.Merge(part);
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.smallest(), all.smallest());
  EXPECT_EQ(merged.largest(), all.largest());
  EXPECT_NEAR(absl::ToDoubleSeconds(merged.mean()), absl::ToDoubleSeconds(all.mean()), 1e-9);
  for (const double fraction : {0.01, 0.5, 0.99}) EXPECT_EQ(merged.Quantile(fraction), all.Quantile(fraction));
}

TEST(LatencyHistogram, KeepsToItsRange) {
  LatencyHistogram histogram;
  histogram.Add(-absl::Seconds(1));
  EXPECT_EQ(histogram.Quantile(1), absl::ZeroDuration());
  histogram.Add(absl::InfiniteDuration());
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_GT(histogram.largest(), absl::Hours(19));
}

}  // namespace
}  // namespace tensord::load
