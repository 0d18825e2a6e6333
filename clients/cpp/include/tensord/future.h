#ifndef TENSORD_FUTURE_H_
#define TENSORD_FUTURE_H_

#include <future>
#include <memory>

#include "tensord/started_call.h"

namespace tensord::client {

// Returns a future of the standard library that has the outcome of a started call. Never holds an exception. The call's
// handles still cancel it.
//
//   std::future<absl::StatusOr<ExecuteAnswer>> answer = ToFuture(client->StartExecute(step));
template <typename Outcome>
std::future<Outcome> ToFuture(const StartedCall<Outcome>& call) {
  auto promise = std::make_shared<std::promise<Outcome>>();
  std::future<Outcome> future = promise->get_future();
  call.Then([promise](const Outcome& outcome) { promise->set_value(outcome); });
  return future;
}

}  // namespace tensord::client

#endif  // TENSORD_FUTURE_H_
