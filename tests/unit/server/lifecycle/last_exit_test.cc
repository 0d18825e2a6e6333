#include "server/lifecycle/last_exit.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

using std::chrono::milliseconds;

void EndAndStay() {
  LastExit& exit = LastExit::OfProcess();
  exit.SetStatus(3);
  exit.SetLastWord([] { std::fputs("the last word", stderr); });
  exit.EndWithin(std::chrono::hours(1));
  exit.EndWithin(milliseconds(1));  // sooner
  exit.EndWithin(std::chrono::hours(1));
  while (true) pause();
}

TEST(LastExitDeathTest, EndsAProcessThatDoesNotEndItself) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(EndAndStay(), ::testing::ExitedWithCode(3), "the last word");
}

}  // namespace
}  // namespace tensord::server
