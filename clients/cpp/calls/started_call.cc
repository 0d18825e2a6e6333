#include "tensord/started_call.h"

#include <condition_variable>
#include <mutex>
#include <vector>

#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/connection/steady_time.h"

namespace tensord::client {

struct CallEnd::State {
  const std::shared_ptr<Cancellation> cancellation;
  std::mutex mutex = {};
  std::condition_variable ended = {};
  bool has_ended = false;
  std::vector<std::function<void()>> callbacks = {};
};

CallEnd::CallEnd(std::shared_ptr<Cancellation> cancellation)
    : state_(new State{.cancellation = std::move(cancellation)}) {}

CallEnd::~CallEnd() = default;

void CallEnd::Set() {
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->has_ended = true;
    callbacks = std::exchange(state_->callbacks, {});
    state_->ended.notify_all();
  }
  for (const std::function<void()>& callback : callbacks) callback();
}

bool CallEnd::WaitUntil(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const auto has_ended = [this] { return state_->has_ended; };
  if (deadline != absl::InfiniteFuture()) {
    return state_->ended.wait_until(lock, ToSteadyClock(SteadyTimeOf(deadline)), has_ended);
  }
  state_->ended.wait(lock, has_ended);
  return true;
}

void CallEnd::Then(std::function<void()> callback) {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->has_ended) return state_->callbacks.push_back(std::move(callback));
  }
  callback();
}

void CallEnd::Cancel() { state_->cancellation->Cancel(); }

}  // namespace tensord::client
