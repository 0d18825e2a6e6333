#include "server/lifecycle/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "engine/base/mutex.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

// How often something was asked for.
class Requests {
 public:
  void Add() {
    MutexLock lock(&mutex_);
    ++count_;
    changed_.SignalAll();
  }
  // False where they do not come.
  bool WaitFor(int count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    MutexLock lock(&mutex_);
    while (count_ < count) {
      if (!changed_.WaitUntil(&mutex_, until)) return count_ >= count;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(StopSignalsTest, EachIsTold) {
  Requests stops, reloads;
  StopSignals signals;
  raise(SIGHUP);
  raise(SIGTERM);
  signals.Deliver([&] { stops.Add(); }, [&] { reloads.Add(); });
  EXPECT_TRUE(stops.WaitFor(1) && reloads.WaitFor(1)) << "those that were kept";
  raise(SIGINT);
  raise(SIGHUP);
  EXPECT_TRUE(stops.WaitFor(2) && reloads.WaitFor(2));
}

TEST(StopSignalsTest, ReloadsThatFillThePipeLoseNoStop) {
  Requests stops;
  StopSignals signals;
  for (int i = 0; i < 100'000; ++i) raise(SIGHUP);
  raise(SIGTERM);
  raise(SIGTERM);
  signals.Deliver([&] { stops.Add(); }, [] {});
  EXPECT_TRUE(stops.WaitFor(2));
}

TEST(StopSignalsTest, AReloadThatComesTooLateDoesNotEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        { const StopSignals signals; }
        raise(SIGHUP);
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tensord::server
