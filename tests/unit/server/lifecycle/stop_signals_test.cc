#include "server/lifecycle/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "tests/unit/server/counted_calls.h"

namespace tensord::server {
namespace {

TEST(StopSignalsTest, EachIsTold) {
  CountedCalls stops, reloads;
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
  CountedCalls stops;
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
