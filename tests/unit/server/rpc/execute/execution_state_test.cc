#include "server/rpc/execute/execution_state.h"

#include <vector>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

using State = ExecutionState;

constexpr State kAll[] = {State::kArrived, State::kFinding,     State::kAwaiting, State::kDecoding, State::kSizing,
                          State::kQueued,  State::kRunningHere, State::kEncoding, State::kAnswered};

// Whether each state may follow the one before it.
bool IsAWay(const std::vector<State>& states) {
  for (size_t i = 1; i < states.size(); ++i) {
    if (!MayFollow(states[i], states[i - 1])) return false;
  }
  return true;
}

TEST(ExecutionStateTest, WaysOfRequests) {
  EXPECT_TRUE(
      IsAWay({State::kArrived, State::kFinding, State::kDecoding, State::kQueued, State::kEncoding, State::kAnswered}));
  EXPECT_TRUE(IsAWay({State::kArrived, State::kFinding, State::kAwaiting, State::kDecoding, State::kSizing,
                      State::kRunningHere, State::kEncoding, State::kAnswered}));
  EXPECT_FALSE(IsAWay({State::kFinding, State::kQueued})) << "nothing was decoded";
  EXPECT_FALSE(IsAWay({State::kSizing, State::kDecoding}));
  EXPECT_FALSE(IsAWay({State::kQueued, State::kRunningHere}));
}

TEST(ExecutionStateTest, EveryStateMayEndAndNoneComesBack) {
  for (const State state : kAll) {
    EXPECT_EQ(MayFollow(State::kAnswered, state), state != State::kAnswered);
    EXPECT_FALSE(MayFollow(State::kArrived, state));
    EXPECT_FALSE(MayFollow(state, state));
    for (const State next : kAll) {
      EXPECT_FALSE(MayFollow(next, state) && MayFollow(state, next)) << "no way goes both ways";
    }
  }
}

}  // namespace
}  // namespace tensord::server
