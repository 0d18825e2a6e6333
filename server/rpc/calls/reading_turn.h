#ifndef TENSORD_SERVER_RPC_CALLS_READING_TURN_H_
#define TENSORD_SERVER_RPC_CALLS_READING_TURN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/rpc/calls/polling_threads.h"
#include "server/rpc/calls/rpc_request.h"
#include "server/rpc/calls/served_call.h"

namespace tensord::server {

// From this many bytes on, reading, copying or writing for a request is not done in a reaction, whose threads are
// everybody's, but in a turn of its tenant.
inline constexpr int64_t kLongBytes = PollingThreads::kLongBytes;

// Has one of two functions called, once. `work`: in a turn of the call's tenant, on a thread that reads. `give_up`: on
// the thread of the alarms, with DEADLINE_EXCEEDED or CANCELLED, as soon as nobody wants the work any more; then the
// work, with all it holds, and its place in the queue are gone. `for_what` ends the message to the client: "the request
// was read". QUEUE_FULL if the queue takes no more: then neither is called.
absl::Status InReadingTurn(const ServedCall& call, absl::Time deadline, std::string for_what,
                           std::function<void()> work, std::function<void(const absl::Status&)> give_up);

// Does the same for a request, as its last step until then: `read` ends it, or hands it on. A failure to get the turn
// ends it too.
void ReadInTurn(RpcRequest* request, std::function<void()> read);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_READING_TURN_H_
