#ifndef TENSORD_CLIENTS_CPP_CALLS_STARTED_CALLS_H_
#define TENSORD_CLIENTS_CPP_CALLS_STARTED_CALLS_H_

#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "clients/cpp/connection/cancellation.h"
#include "tensord/started_call.h"

namespace tensord::client {

// The calls of a client that run on threads of their own, so that they are the blocking calls themselves, with all that
// those do. At most kMost at a time, without those of which only callbacks are left, and none of them waits for
// another. Thread-safe.
class StartedCalls {
 public:
  static constexpr size_t kMost = 64;

  ~StartedCalls() { End(); }

  // Cancels all calls, and waits for their threads and callbacks, but for the one that it is called on. Calls that are
  // started later fail with CANCELLED.
  void End();

  // Starts `work`, which returns an Outcome. One beyond kMost fails at once with RESOURCE_EXHAUSTED.
  template <typename Outcome>
  StartedCall<Outcome> Start(std::function<Outcome()> work) {
    auto cancellation = std::make_shared<Cancellation>();
    auto state = std::make_shared<typename StartedCall<Outcome>::State>(cancellation);
    auto call = [cancellation, state, work = std::move(work)]() mutable {
      const Cancellation::Scope scope(cancellation.get());
      state->outcome = OutcomeOf(work);
      work = nullptr;  // frees the arguments before anybody learns of the end
    };
    const absl::Status started = Run(cancellation, std::move(call), [state] { state->end.Set(); });
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

  // Shared with the threads, so that a callback can destroy the client.
  struct Shared {
    std::mutex mutex;
    bool is_over = false;
    size_t under_way = 0;  // calls, without those of which only callbacks are left
    std::list<std::shared_ptr<Running>> running;
  };

  // Returns what a call returned or threw: there is nobody above it on its thread.
  template <typename Outcome>
  static Outcome OutcomeOf(const std::function<Outcome()>& work) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("the client has no memory for the call");
    } catch (const std::exception& error) {
      return absl::InternalError(error.what());
    }
  }

  // Runs `call`, and `then` once there is room for another.
  absl::Status Run(std::shared_ptr<Cancellation> cancellation, std::function<void()> call, std::function<void()> then);
  // Does the work of Run, under the lock.
  absl::Status StartLocked(std::shared_ptr<Cancellation> cancellation, std::function<void()> call,
                           std::function<void()> then);
  // Takes the threads that are done, for the caller to join without the lock. Leaves the thread that asks: its last
  // objects may start a call. Under the lock.
  static std::list<std::shared_ptr<Running>> TakeDone(Shared& shared);

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_STARTED_CALLS_H_
