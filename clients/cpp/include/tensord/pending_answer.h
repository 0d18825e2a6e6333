#ifndef TENSORD_PENDING_ANSWER_H_
#define TENSORD_PENDING_ANSWER_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/execute_answer.h"

namespace tensord::client {

class Arrival;

// The answer to a call that a Pipeline was given. May be waited for after the pipeline is gone, or not at all. Can be
// moved, and not be used after that. Thread-compatible.
class PendingAnswer {
 public:
  explicit PendingAnswer(std::shared_ptr<Arrival> arrival) : arrival_(std::move(arrival)) {}
  PendingAnswer(PendingAnswer&&) = default;
  PendingAnswer& operator=(PendingAnswer&& other) noexcept {
    std::swap(arrival_, other.arrival_);
    return *this;
  }
  ~PendingAnswer();

  // Tells whether the answer is there by then. absl::InfinitePast(): true if it is there now.
  bool WaitUntil(absl::Time deadline);
  // Waits until the answer is there. Returns the server's refusal of the call, or the end of the pipeline. The first
  // time it copies the tensors out of gRPC's buffers, each once; later it returns the same tensors.
  absl::StatusOr<ExecuteAnswer> Wait();
  // Calls `callback` with what Wait returns, once: on the pipeline's thread when the answer comes, also after this
  // object is gone, or at once and on this thread if it is there. Several are called in their order: where earlier ones
  // are being called on another thread, that thread goes on with this one. The pipeline receives nothing meanwhile: a
  // callback must not throw, Submit, Finish, destroy the pipeline, or wait for another answer of it, nor for a callback
  // that another thread gives to this one. A failure that a callback has seen is not one that Finish returns.
  void Then(std::function<void(const absl::StatusOr<ExecuteAnswer>&)> callback);

 private:
  std::shared_ptr<Arrival> arrival_;
};

}  // namespace tensord::client

#endif  // TENSORD_PENDING_ANSWER_H_
