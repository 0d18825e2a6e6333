#include "clients/load/arrivals.h"

#include <cmath>

#include "gtest/gtest.h"

namespace tensord::load {
namespace {

TEST(Arrivals, FixedOnesAreAsFarApartAsTheRateSays) {
  Arrivals arrivals(ArrivalKind::kFixed, 8, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(arrivals.Next(), absl::Seconds(i / 8.0));
}

TEST(Arrivals, PoissonOnesHaveTheRateAndSpread) {
  constexpr int kCount = 100'000;
  Arrivals arrivals(ArrivalKind::kPoisson, 1000, 7);
  double previous = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double at = absl::ToDoubleSeconds(arrivals.Next());
    ASSERT_GE(at, previous);
    squares += (at - previous) * (at - previous);
    previous = at;
  }
  // Exponential gaps: the mean is 1/rate, the mean of the squares 2/rate^2.
  EXPECT_NEAR(previous / kCount, 1e-3, 2e-5);
  EXPECT_NEAR(squares / kCount, 2e-6, 1e-7);
}

TEST(Arrivals, AreNoFurtherThanClocksCount) {
  for (const ArrivalKind kind : {ArrivalKind::kFixed, ArrivalKind::kPoisson}) {
    Arrivals arrivals(kind, 1e-300, 1);
    arrivals.Next();
    EXPECT_EQ(arrivals.Next(), absl::Hours(24 * 365));
    EXPECT_EQ(arrivals.Next(), absl::Hours(24 * 365));
  }
}

TEST(Arrivals, AreThoseOfTheSeed) {
  Arrivals a(ArrivalKind::kPoisson, 10, 1), same(ArrivalKind::kPoisson, 10, 1), other(ArrivalKind::kPoisson, 10, 2);
  const absl::Duration first = a.Next();
  EXPECT_EQ(first, same.Next());
  EXPECT_NE(first, other.Next());
}

}  // namespace
}  // namespace tensord::load
