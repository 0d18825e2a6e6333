#include "server/rpc/programs/unserved_programs.h"

#include <string>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

TEST(UnservedProgramsTest, AreRememberedForAWhile) {
  UnservedPrograms unserved;
  const UnservedPrograms::Time now;
  const Fingerprint one = Fingerprint::Of("one"), two = Fingerprint::Of("two");
  unserved.Add(one, now, absl::Seconds(10));
  EXPECT_TRUE(unserved.Has(one, now + std::chrono::seconds(9)));
  EXPECT_FALSE(unserved.Has(two, now));
  EXPECT_FALSE(unserved.Has(one, now + std::chrono::seconds(10)));
  unserved.Add(two, now, absl::ZeroDuration());
  EXPECT_FALSE(unserved.Has(two, now)) << "nothing is remembered";
}

TEST(UnservedProgramsTest, OnlySoManyAre) {
  UnservedPrograms unserved;
  const UnservedPrograms::Time now;
  const auto of = [](size_t i) { return Fingerprint::Of(std::to_string(i)); };
  for (size_t i = 0; i <= UnservedPrograms::kMost; ++i) unserved.Add(of(i), now, absl::Seconds(10));
  EXPECT_TRUE(unserved.Has(of(0), now));
  EXPECT_FALSE(unserved.Has(of(UnservedPrograms::kMost), now));
  const UnservedPrograms::Time later = now + std::chrono::seconds(10);
  unserved.Add(of(UnservedPrograms::kMost), later, absl::Seconds(10));
  EXPECT_TRUE(unserved.Has(of(UnservedPrograms::kMost), later)) << "what is over makes room";
}

}  // namespace
}  // namespace tensord::server
