#include "engine/runtime/programs/refused_graphs.h"

#include "engine/base/refusal.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
const absl::Status kWrong = Refuse(Refusal::kShapeMismatch, "sizes differ: 2 and 3");

RefusedGraphs::KeyPtr Key(const std::string& bytes) {
  return std::make_shared<const ProgramKey>(ProgramKey{.fingerprint = Fingerprint::Of(bytes), .bytes = bytes});
}

TEST(RefusedGraphsTest, RemembersForAWhile) {
  RefusedGraphs refused({.keep = absl::Seconds(30)});
  refused.Add(Key("a"), kWrong, {"x", "y"}, kStart);
  const RefusedGraphs::Refused* found = refused.Find(*Key("a"), kStart + absl::Seconds(29));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->status, kWrong);
  EXPECT_EQ(found->names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(refused.Find(*Key("b"), kStart), nullptr);
  EXPECT_EQ(refused.Find(*Key("a"), kStart + absl::Seconds(30)), nullptr);
  EXPECT_EQ(refused.entries(), 0);
  EXPECT_EQ(refused.bytes(), 0);
}

TEST(RefusedGraphsTest, AShorterTimeHoldsForWhatIsKeptToo) {
  RefusedGraphs refused({.keep = absl::Seconds(30)});
  refused.Add(Key("a"), kWrong, {}, kStart);
  refused.Add(Key("b"), kWrong, {}, kStart + absl::Seconds(25));
  refused.SetKeep(absl::Seconds(10), kStart + absl::Seconds(25));
  EXPECT_NE(refused.Find(*Key("a"), kStart + absl::Seconds(29)), nullptr) << "its time is over sooner";
  EXPECT_EQ(refused.Find(*Key("a"), kStart + absl::Seconds(30)), nullptr);
  EXPECT_NE(refused.Find(*Key("b"), kStart + absl::Seconds(34)), nullptr);
  EXPECT_EQ(refused.Find(*Key("b"), kStart + absl::Seconds(35)), nullptr);
  refused.SetKeep(absl::ZeroDuration(), kStart + absl::Seconds(40));
  refused.Add(Key("c"), kWrong, {}, kStart + absl::Seconds(40));
  EXPECT_EQ(refused.entries(), 0);
}

TEST(RefusedGraphsTest, OnlyWhatTheGraphDecides) {
  RefusedGraphs refused({.keep = absl::Seconds(30)});
  for (const Refusal other : {Refusal::kQueueFull, Refusal::kDeadlineExceeded, Refusal::kInternal, Refusal::kCancelled,
                              Refusal::kLimitExceeded, Refusal::kOutOfMemory}) {
    refused.Add(Key("a"), Refuse(other, "not now"), {}, kStart);
  }
  refused.Add(Key("a"), absl::InvalidArgumentError("no refusal"), {}, kStart);
  EXPECT_EQ(refused.entries(), 0);
  refused.Add(Key("a"), Refuse(Refusal::kUnsupportedOnDevice, "never"), {}, kStart);
  EXPECT_EQ(refused.entries(), 1);
}

TEST(RefusedGraphsTest, AKeyIsToldApartByItsBytes) {
  RefusedGraphs refused({.keep = absl::Seconds(30)});
  const ProgramKey other = {.fingerprint = Fingerprint::Of("a"), .bytes = "collides"};
  refused.Add(Key("a"), kWrong, {}, kStart);
  EXPECT_EQ(refused.Find(other, kStart), nullptr);
}

TEST(RefusedGraphsTest, IsBounded) {
  RefusedGraphs few({.keep = absl::Seconds(30), .max_entries = 2});
  for (const char* key : {"a", "b", "c"}) few.Add(Key(key), kWrong, {}, kStart);
  EXPECT_EQ(few.entries(), 2);
  EXPECT_EQ(few.Find(*Key("a"), kStart), nullptr);
  EXPECT_NE(few.Find(*Key("c"), kStart), nullptr);

  RefusedGraphs small({.keep = absl::Seconds(30), .max_bytes = 5000});
  small.Add(Key(std::string(6000, 'x')), kWrong, {}, kStart);
  EXPECT_EQ(small.entries(), 0);
  for (const char key : {'a', 'b', 'c'}) small.Add(Key(std::string(2000, key)), kWrong, {}, kStart);
  EXPECT_EQ(small.entries(), 2);
  EXPECT_LE(small.bytes(), 5000);

  RefusedGraphs off({.keep = absl::ZeroDuration()});
  off.Add(Key("a"), kWrong, {}, kStart);
  EXPECT_EQ(off.entries(), 0);
}

}  // namespace
}  // namespace tensord
