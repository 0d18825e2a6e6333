#include "engine/base/stop_signal.h"

#include <chrono>
#include <thread>

#include "engine/base/refusal.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

TEST(StopSignalTest, NobodyAsksWithoutOne) { EXPECT_FALSE(StopRequested()); }

TEST(StopSignalTest, AnEmptyCheckNeverStops) {
  const StopSignal::Check none;
  StopSignal signal(none, std::chrono::nanoseconds(0));
  const StopSignal::Scope scope(&signal);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(StopRequested());
  EXPECT_TRUE(signal.status().ok());
}

TEST(StopSignalTest, KeepsTheFirstRefusal) {
  int asks = 0;
  const StopSignal::Check check = [&asks] {
    return ++asks < 3 ? absl::OkStatus() : Refuse(Refusal::kCancelled, asks == 3 ? "first" : "second");
  };
  StopSignal signal(check, std::chrono::nanoseconds(0));
  const StopSignal::Scope scope(&signal);
  EXPECT_FALSE(StopRequested());
  EXPECT_FALSE(StopRequested());
  EXPECT_TRUE(StopRequested());
  EXPECT_TRUE(StopRequested());
  EXPECT_EQ(asks, 3);
  EXPECT_EQ(signal.status().message(), "first");
  EXPECT_EQ(signal.Ask().message(), "first");
}

// However short the pieces are.
TEST(StopSignalTest, ALoopThatNeverEndsHears) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  const StopSignal::Check check = [&end] {
    return std::chrono::steady_clock::now() < end ? absl::OkStatus() : Refuse(Refusal::kCancelled, "late");
  };
  StopSignal signal(check);
  const StopSignal::Scope scope(&signal);
  while (!StopRequested()) continue;
  EXPECT_TRUE(signal.is_set());
}

TEST(StopSignalTest, ScopesNest) {
  const StopSignal::Check refuses = [] { return Refuse(Refusal::kCancelled, "no"); };
  StopSignal outer(refuses, std::chrono::nanoseconds(0));
  const StopSignal::Scope scope(&outer);
  {
    const StopSignal::Scope none(nullptr);
    EXPECT_EQ(StopSignal::Current(), nullptr);
    EXPECT_FALSE(StopRequested());
  }
  EXPECT_EQ(StopSignal::Current(), &outer);
  EXPECT_TRUE(StopRequested());
}

TEST(StopSignalTest, AWaitAsksWithoutTheMutex) {
  Mutex mutex;
  CondVar never;
  int asks = 0;
  const StopSignal::Check check = [&] {
    const MutexLock lock(&mutex);
    return ++asks < 3 ? absl::OkStatus() : Refuse(Refusal::kCancelled, "no");
  };
  StopSignal signal(check);
  const StopSignal::Scope scope(&signal);
  absl::Status waited;
  {
    const MutexLock lock(&mutex);
    while (waited.ok()) waited = WaitUnlessStopped(&never, &mutex);
  }
  EXPECT_EQ(waited.message(), "no");
  EXPECT_EQ(asks, 3);
}

TEST(StopSignalTest, AWaitWithoutASignalEndsWhenSomethingComes) {
  Mutex mutex;
  CondVar changed;
  bool is_there = false;
  std::thread other([&] {
    const MutexLock lock(&mutex);
    is_there = true;
    changed.SignalAll();
  });
  {
    const MutexLock lock(&mutex);
    while (!is_there) EXPECT_TRUE(WaitUnlessStopped(&changed, &mutex).ok());
  }
  other.join();
}

}  // namespace
}  // namespace tensord
