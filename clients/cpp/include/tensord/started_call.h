#ifndef TENSORD_STARTED_CALL_H_
#define TENSORD_STARTED_CALL_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace tensord::client {

class Cancellation;

// The end of a call that runs on a thread of its client's, as the handles of the call see it. Thread-safe. Used by
// StartedCall, not by programs.
class CallEnd {
 public:
  explicit CallEnd(std::shared_ptr<Cancellation> cancellation);
  ~CallEnd();
  CallEnd(const CallEnd&) = delete;
  CallEnd& operator=(const CallEnd&) = delete;

  // Says that the call has ended, once, and calls what waits for it.
  void Set();
  bool WaitUntil(absl::Time deadline);
  void Then(std::function<void()> callback);
  void Cancel();

 private:
  struct State;

  const std::unique_ptr<State> state_;
};

// A call that Client::StartExecute or one of its kind began. Outcome is absl::StatusOr of the answer, or absl::Status.
// A handle: copies are of the same call, which goes on if all of them are gone. May outlive the client, which cancels
// its calls when it is destroyed. Thread-safe, but for assignment.
//
//   StartedCall call = client->StartExecute({.fingerprint = step, .arguments = {x}});
//   ...
//   if (!call.WaitUntil(absl::Now() + absl::Seconds(1))) call.Cancel();
//   absl::StatusOr<ExecuteAnswer> answer = call.Wait();
template <typename Outcome>
class StartedCall {
 public:
  struct State {
    explicit State(std::shared_ptr<Cancellation> cancellation) : end(std::move(cancellation)) {}

    std::optional<Outcome> outcome;  // written before the end, and read after it
    CallEnd end;
  };

  explicit StartedCall(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Tells whether the call has ended by then. absl::InfinitePast(): true if it has ended now.
  bool WaitUntil(absl::Time deadline) const { return state_->end.WaitUntil(deadline); }

  // Waits for the end. Returns what the blocking call would have returned; CANCELLED after Cancel, unless the answer
  // was there before. May be called again.
  Outcome Wait() const {
    state_->end.WaitUntil(absl::InfiniteFuture());
    return *state_->outcome;
  }

  // Calls `callback` with the outcome, once: on the call's thread when the call ends, or at once and on this thread if
  // it has ended. Several are called in their order: where earlier ones are being called on another thread, that thread
  // goes on with this one. A callback may start other calls. It must not throw, nor wait for a callback that another
  // thread gives to the same call. It may destroy the client, which waits for the other calls and their callbacks
  // first.
  void Then(std::function<void(const Outcome&)> callback) const {
    const std::shared_ptr<State> state = state_;  // a callback may destroy this handle
    // The state owns the callback until the end, and so the callback must not own the state.
    state->end.Then([it = state.get(), callback = std::move(callback)] { callback(*it->outcome); });
  }

  // Gives the call up. Returns at once; the call ends at most two seconds later, even if the transport hangs; an upload
  // five, since it deletes what it left, and a call that waits for shared memory just then ten. The server stops the
  // run where it can; a call that keeps or donates tensors may have done so.
  void Cancel() const { state_->end.Cancel(); }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace tensord::client

#endif  // TENSORD_STARTED_CALL_H_
