#include "server/rpc/run_in_turn.h"

#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

TEST(RunInTurnTest, StepsInsideAStepComeAfterIt) {
  std::vector<int> order;
  RunInTurn([&] {
    order.push_back(1);
    RunInTurn([&] {
      order.push_back(3);
      RunInTurn([&] { order.push_back(5); });
    });
    RunInTurn([&] { order.push_back(4); });
    order.push_back(2);
  });
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST(RunInTurnTest, AChainTakesNoStack) {
  int left = 1000000;
  std::function<void()> step = [&] {
    if (--left > 0) RunInTurn(step);
  };
  RunInTurn(step);
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace tensord::server
