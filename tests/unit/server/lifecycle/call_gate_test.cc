#include "server/lifecycle/call_gate.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "engine/base/refusal.h"
#include "engine/base/steady_time.h"
#include "gtest/gtest.h"
#include "tests/testlib/reason_of.h"

namespace tensord::server {
namespace {

TEST(CallGateTest, LetsCallsInOnlyWhileServing) {
  CallGate gate(100);
  EXPECT_EQ(ReasonOf(gate.Enter(1)), "SERVER_DRAINING");
  EXPECT_TRUE(gate.MoveTo(ServingState::kWarming));
  EXPECT_EQ(ReasonOf(gate.Enter(1)), "SERVER_DRAINING");
  EXPECT_TRUE(gate.MoveTo(ServingState::kServing));
  EXPECT_TRUE(gate.Enter(1).ok());
  EXPECT_TRUE(gate.MoveTo(ServingState::kDraining));
  EXPECT_EQ(ReasonOf(gate.Enter(1)), "SERVER_DRAINING");
  EXPECT_EQ(gate.snapshot().calls, 1);
  gate.Leave(1);
  EXPECT_EQ(gate.snapshot().calls, 0);
}

TEST(CallGateTest, StatesOnlyMoveOn) {
  CallGate gate(100);
  EXPECT_FALSE(gate.MoveTo(ServingState::kStarting));
  EXPECT_TRUE(gate.MoveTo(ServingState::kDraining));
  EXPECT_FALSE(gate.MoveTo(ServingState::kServing));
  EXPECT_TRUE(gate.MoveTo(ServingState::kStopped));
  EXPECT_FALSE(gate.MoveTo(ServingState::kStopped));
}

TEST(CallGateTest, ATenantHasItsShareOfThem) {
  CallGate gate(100, 40);
  gate.MoveTo(ServingState::kServing);
  EXPECT_TRUE(gate.Enter(30, "greedy").ok());
  const absl::Status refused = gate.Enter(11, "greedy");
  EXPECT_EQ(ReasonOf(refused), "LIMIT_EXCEEDED");
  EXPECT_EQ(DetailOf(refused)->limit, "scheduling.tenant_in_flight_percent");
  EXPECT_EQ(DetailOf(refused)->limit_value, 40);
  EXPECT_EQ(DetailOf(refused)->actual_value, 41);
  EXPECT_TRUE(gate.Enter(50, "modest").ok()) << "one that is alone may be larger";
  EXPECT_TRUE(gate.Enter(10, "greedy").ok());
  EXPECT_EQ(*gate.bytes().TenantShares(), (std::map<std::string, double>{{"greedy", 1}, {"modest", 1.25}}));
  gate.Leave(30, "greedy");
  EXPECT_TRUE(gate.Enter(10, "greedy").ok());
  gate.Leave(10, "greedy");
  gate.Leave(10, "greedy");
  gate.Leave(50, "modest");
  EXPECT_EQ(gate.snapshot().bytes, 0);
}

TEST(CallGateTest, ASharePutInForceCountsWhatIsInside) {
  CallGate gate(100);
  gate.MoveTo(ServingState::kServing);
  EXPECT_TRUE(gate.Enter(60, "greedy").ok());
  gate.bytes().SetMost(100, 40);
  EXPECT_EQ(DetailOf(gate.Enter(1, "greedy"))->actual_value, 61);
  gate.Leave(60, "greedy");
  EXPECT_TRUE(gate.Enter(40, "greedy").ok());
  gate.bytes().SetMost(100, TenantBytes::kUnlimited);
  EXPECT_FALSE(gate.bytes().TenantShares().has_value());
  EXPECT_TRUE(gate.Enter(60, "greedy").ok());
}

TEST(CallGateTest, BytesInsideAreBounded) {
  CallGate gate(100);
  gate.MoveTo(ServingState::kServing);
  EXPECT_TRUE(gate.Enter(1000).ok()) << "a call that is alone always fits";
  const absl::Status refused = gate.Enter(1);
  EXPECT_EQ(ReasonOf(refused), "LIMIT_EXCEEDED");
  EXPECT_EQ(DetailOf(refused)->limit, "in_flight_bytes");
  EXPECT_EQ(DetailOf(refused)->limit_value, 100);
  EXPECT_EQ(DetailOf(refused)->actual_value, 1001);
  gate.Leave(1000);
  EXPECT_TRUE(gate.Enter(60).ok());
  EXPECT_TRUE(gate.Enter(40).ok());
  EXPECT_FALSE(gate.Enter(1).ok());
  EXPECT_TRUE(gate.Enter(0).ok());
}

TEST(CallGateTest, WaitsUntilTheLastCallLeaves) {
  CallGate gate(100);
  gate.MoveTo(ServingState::kServing);
  ASSERT_TRUE(gate.Enter(1).ok());
  std::thread leaver([&gate] { gate.Leave(1); });
  EXPECT_TRUE(gate.WaitUntilEmpty(SteadyNow() + absl::Minutes(1), [] { return false; }));
  leaver.join();
}

TEST(CallGateTest, GivesUpWhenToldTo) {
  CallGate gate(100);
  gate.MoveTo(ServingState::kServing);
  ASSERT_TRUE(gate.Enter(1).ok());
  EXPECT_FALSE(gate.WaitUntilEmpty(SteadyNow() + absl::Minutes(1), [] { return true; }));
  EXPECT_FALSE(gate.WaitUntilEmpty(SteadyNow() - absl::Seconds(1), [] { return false; }));
}

TEST(CallGateTest, AWaiterThatIsWokenLooksAgain) {
  CallGate gate(100);
  gate.MoveTo(ServingState::kServing);
  ASSERT_TRUE(gate.Enter(1).ok());
  std::atomic<bool> hurry{false};
  const absl::Time start = SteadyNow();
  std::thread waiter(
      [&] { EXPECT_FALSE(gate.WaitUntilEmpty(start + absl::Hours(1), [&hurry] { return hurry.load(); })); });
  hurry = true;
  gate.WakeWaiters();
  waiter.join();
}

class CountingWatcher : public DrainWatcher {
 public:
  void OnDrain() override { ++count_; }
  int count() const { return count_; }

 private:
  std::atomic<int> count_{0};
};

TEST(CallGateTest, WatchersLearnOfTheDrainOnce) {
  CallGate gate(100);
  const auto early = std::make_shared<CountingWatcher>();
  auto gone = std::make_shared<CountingWatcher>();
  gate.Watch(early);
  gate.Watch(gone);
  for (int i = 0; i < 1000; ++i) gate.Watch(std::make_shared<CountingWatcher>());
  gone = nullptr;
  gate.MoveTo(ServingState::kServing);
  EXPECT_EQ(early->count(), 0);
  gate.MoveTo(ServingState::kDraining);
  gate.MoveTo(ServingState::kStopped);
  EXPECT_EQ(early->count(), 1);
  const auto late = std::make_shared<CountingWatcher>();
  gate.Watch(late);
  EXPECT_EQ(late->count(), 1);
}

TEST(CallGateTest, ACallThatIsAloneMayHaveMoreThanItCameWith) {
  CallGate gate(100, 60);
  gate.MoveTo(ServingState::kServing);
  ASSERT_TRUE(gate.Enter(50, "a").ok());
  EXPECT_EQ(DetailOf(gate.bytes().Add(70, "a", 49))->limit, "in_flight_bytes");
  ASSERT_TRUE(gate.bytes().Add(70, "a", 50).ok());
  EXPECT_EQ(gate.snapshot().bytes, 120);
  gate.bytes().Remove(70, "a");
  ASSERT_TRUE(gate.Enter(5, "a").ok());
  EXPECT_EQ(DetailOf(gate.bytes().Add(20, "a", 50))->limit, "scheduling.tenant_in_flight_percent");
  gate.Leave(5, "a");
  gate.Leave(50, "a");
  EXPECT_EQ(gate.snapshot().bytes, 0);
}

TEST(CallGateTest, BytesAreAddedToACallWhateverTheState) {
  CallGate gate(100, 60);
  gate.MoveTo(ServingState::kServing);
  ASSERT_TRUE(gate.Enter(10, "a").ok());
  gate.MoveTo(ServingState::kDraining);
  EXPECT_TRUE(gate.bytes().Add(50, "a").ok()) << "what is in progress is finished";
  EXPECT_EQ(DetailOf(gate.bytes().Add(1, "a"))->limit, "scheduling.tenant_in_flight_percent");
  EXPECT_EQ(DetailOf(gate.bytes().Add(50, "b"))->limit, "in_flight_bytes");
  EXPECT_EQ(gate.snapshot().bytes, 60);
  gate.bytes().Remove(50, "a");
  EXPECT_EQ(gate.snapshot().calls, 1);
  gate.Leave(10, "a");
  EXPECT_EQ(gate.snapshot().bytes, 0);
}

}  // namespace
}  // namespace tensord::server
