#include "tensord/started_call.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "clients/cpp/calls/callbacks.h"
#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/connection/steady_time.h"

namespace tensord::client {

struct CallEnd::State {
  const std::shared_ptr<Cancellation> cancellation;
  std::mutex mutex = {};
  std::condition_variable ended = {};
  bool has_ended = false;
  Callbacks callbacks = {};
};

CallEnd::CallEnd(std::shared_ptr<Cancellation> cancellation)
    : state_(new State{.cancellation = std::move(cancellation)}) {}

CallEnd::~CallEnd() = default;

void CallEnd::Set() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->has_ended = true;
  state_->ended.notify_all();
  state_->callbacks.Call(lock);
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
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->callbacks.Add(std::move(callback));
  if (state_->has_ended) state_->callbacks.Call(lock);
}

void CallEnd::Cancel() { state_->cancellation->Cancel(); }

}  // namespace tensord::client
