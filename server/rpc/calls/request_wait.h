#ifndef TENSORD_SERVER_RPC_CALLS_REQUEST_WAIT_H_
#define TENSORD_SERVER_RPC_CALLS_REQUEST_WAIT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/runtime/devices/cancel_token.h"
#include "server/lifecycle/alarms.h"
#include "server/rpc/calls/rpc_request.h"

namespace tensord::server {

// A request's wait for an event that comes without it, such as the end of a compilation that others wait for too. It
// lasts until the event, or the request's deadline or cancellation, whichever is first. Shared by the waiter and the
// teller of the event; thread-safe. The server's alarms must outlive it.
//
//   waiting → (Watch) → ended: by End, or by giving up
class RequestWait : public std::enable_shared_from_this<RequestWait> {
 public:
  // Waits for a request to run a program.
  explicit RequestWait(const RpcRequest& request);
  // Waits until `deadline` at the latest; `for_what` ends the message to the client: "the program ran".
  RequestWait(Alarms* alarms, absl::Time deadline, std::shared_ptr<const CancelToken> cancel, std::string for_what);

  // Ends the wait: the event has come. False: the request was given up before, and is not to be touched.
  bool End();
  // Lets the wait be given up from now on: then `give_up` is called once, with DEADLINE_EXCEEDED or CANCELLED, on the
  // thread of the alarms. Does nothing if End was called already.
  void Watch(std::function<void(const absl::Status&)> give_up);

 private:
  using GiveUp = std::function<void(const absl::Status&)>;

  // Returns true for the first to end it, who gets the function to call.
  bool Take(GiveUp* give_up);
  void Ring();

  Alarms* const alarms_;
  const absl::Time deadline_;
  const std::shared_ptr<const CancelToken> cancel_;
  const std::string for_what_;
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  GiveUp give_up_ ABSL_GUARDED_BY(mutex_);
  std::optional<Alarms::Id> alarm_ ABSL_GUARDED_BY(mutex_);
  CancelToken::Listener listener_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_REQUEST_WAIT_H_
