#ifndef TENSORD_CLIENTS_CPP_CALLS_STARTED_CALLS_H_
#define TENSORD_CLIENTS_CPP_CALLS_STARTED_CALLS_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "clients/cpp/connection/cancellation.h"
#include "tensord/started_call.h"

namespace tensord::client {

// The calls of a client that run on threads of their own, so that they are the blocking calls themselves, with all that
// those do. At most kMost at a time, and none of them waits for another. Thread-safe.
class StartedCalls {
 public:
  static constexpr size_t kMost = 64;

  ~StartedCalls() { End(); }

  // Cancels all calls, and waits for their threads and callbacks. Calls that are started later fail with CANCELLED.
  void End();

  // Starts `work`, which returns an Outcome. One beyond kMost fails at once with RESOURCE_EXHAUSTED.
  template <typename Outcome>
  StartedCall<Outcome> Start(std::function<Outcome()> work) {
    auto cancellation = std::make_shared<Cancellation>();
    auto state = std::make_shared<typename StartedCall<Outcome>::State>(cancellation);
    const absl::Status started = Run(cancellation, [cancellation, state, work = std::move(work)]() mutable {
      {
        const Cancellation::Scope scope(cancellation.get());
        state->outcome = work();
        work = nullptr;  // frees the arguments before anybody learns of the end
      }
      state->end.Set();
    });
    if (!started.ok()) {
      state->outcome = started;
      state->end.Set();
    }
    return StartedCall<Outcome>(std::move(state));
  }

 private:
  struct Running {
    std::shared_ptr<Cancellation> cancellation;
    std::thread thread = {};
    bool is_done = false;
  };

  absl::Status Run(std::shared_ptr<Cancellation> cancellation, std::function<void()> work);
  // Joins the threads that are done. Under the lock.
  void Reap();

  std::mutex mutex_;
  bool is_over_ = false;
  std::list<Running> running_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_STARTED_CALLS_H_
