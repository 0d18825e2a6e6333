#include "server/admission/rate_limiter.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24);

TEST(RateLimiterTest, WithoutARateAllComeIn) {
  RateLimiter limiter({});
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limiter.Admit("a", kNow).ok());
  EXPECT_EQ(limiter.tenants(), 0);
}

TEST(RateLimiterTest, ABurstAndThenTheRate) {
  RateLimiter limiter({.per_second = 10, .burst = 3});
  absl::Time now = kNow;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.Admit("a", now).ok()) << i;
  const RefusalDetail detail = *DetailOf(limiter.Admit("a", now));
  EXPECT_EQ(detail.reason, "RATE_LIMITED");
  EXPECT_EQ(detail.limit, "scheduling.tenant_requests_per_second");
  EXPECT_EQ(detail.limit_value, 10);
  EXPECT_EQ(detail.retry_after, absl::Milliseconds(100));
  now += detail.retry_after - absl::Nanoseconds(1);
  EXPECT_FALSE(limiter.Admit("a", now).ok());
  now += absl::Nanoseconds(1);
  EXPECT_TRUE(limiter.Admit("a", now).ok()) << "as it was told";
  EXPECT_FALSE(limiter.Admit("a", now).ok());
  now += absl::Hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.Admit("a", now).ok()) << "no more than a burst is saved up";
  EXPECT_FALSE(limiter.Admit("a", now).ok());
}

TEST(RateLimiterTest, AClockThatIsPutBackCostsABucketAtMost) {
  RateLimiter limiter({.per_second = 10, .burst = 3});
  EXPECT_TRUE(limiter.Admit("a", kNow).ok());
  const absl::Time before = kNow - absl::Hours(1);
  const RefusalDetail detail = *DetailOf(limiter.Admit("a", before));
  EXPECT_EQ(detail.retry_after, absl::Milliseconds(100));
  EXPECT_TRUE(limiter.Admit("a", before + detail.retry_after).ok());
}

TEST(RateLimiterTest, TheBurstIsASecondsUnlessItIsSet) {
  RateLimiter limiter({.per_second = 7});
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(limiter.Admit("a", kNow).ok()) << i;
  EXPECT_FALSE(limiter.Admit("a", kNow).ok());
}

TEST(RateLimiterTest, KnowsHowMuchOfItsBucketATenantHasUsed) {
  RateLimiter limiter({.per_second = 4});
  EXPECT_TRUE(limiter.Admit("a", kNow).ok());
  EXPECT_TRUE(limiter.Admit("b", kNow).ok());
  EXPECT_TRUE(limiter.Admit("b", kNow).ok());
  using ByTenant = std::map<std::string, double>;
  EXPECT_EQ(*limiter.TenantShares(kNow), (ByTenant{{"a", 0.25}, {"b", 0.5}}));
  EXPECT_EQ(*limiter.TenantShares(kNow + absl::Milliseconds(250)), (ByTenant{{"b", 0.25}}));
  EXPECT_FALSE(RateLimiter({}).TenantShares(kNow).has_value());
}

TEST(RateLimiterTest, EachTenantHasItsOwn) {
  RateLimiter limiter({.per_second = 1});
  EXPECT_TRUE(limiter.Admit("a", kNow).ok());
  EXPECT_FALSE(limiter.Admit("a", kNow).ok());
  EXPECT_TRUE(limiter.Admit("b", kNow).ok());
}

TEST(RateLimiterTest, AnotherRateCountsFromThenOn) {
  RateLimiter limiter({});
  EXPECT_TRUE(limiter.Admit("a", kNow).ok());
  limiter.SetOptions({.per_second = 1, .burst = 2});
  EXPECT_TRUE(limiter.Admit("a", kNow).ok());
  EXPECT_TRUE(limiter.Admit("a", kNow).ok());
  EXPECT_FALSE(limiter.Admit("a", kNow).ok());
  limiter.SetOptions({.per_second = 10, .burst = 2});
  EXPECT_EQ(DetailOf(limiter.Admit("a", kNow))->retry_after, absl::Milliseconds(100)) << "the bucket is empty still";
  limiter.SetOptions({});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limiter.Admit("a", kNow).ok());
  EXPECT_EQ(limiter.tenants(), 0);
}

TEST(RateLimiterTest, ForgetsTenantsThatRest) {
  RateLimiter limiter({.per_second = 1000});
  for (int i = 0; i < 100000; ++i) {
    ASSERT_TRUE(limiter.Admit(absl::StrCat("tenant ", i), kNow + i * absl::Milliseconds(1)).ok());
  }
  EXPECT_LE(limiter.tenants(), 1024);
}

}  // namespace
}  // namespace tensord::server
