#include "server/rpc/run_in_turn.h"

#include <deque>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace tensord::server {

void RunInTurn(std::function<void()> step) {
  using Steps = std::deque<std::function<void()>>;
  thread_local Steps* waiting = nullptr;  // of the step that runs on this thread
  if (waiting != nullptr) {
    waiting->push_back(std::move(step));
    return;
  }
  Steps steps;
  waiting = &steps;
  const absl::Cleanup done = [] { waiting = nullptr; };  // also where a step throws
  step();
  while (!steps.empty()) {
    const std::function<void()> next = std::move(steps.front());
    steps.pop_front();
    next();
  }
}

}  // namespace tensord::server
