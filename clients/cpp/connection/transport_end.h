#ifndef TENSORD_CLIENTS_CPP_CONNECTION_TRANSPORT_END_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_TRANSPORT_END_H_

#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/status.h"

namespace tensord::client {

// The end of every wait for the transport. Now and then the transport loses steps of calls, and its queue never hands
// out their tags; others come after minutes, when a server that hangs goes on. A waiter gives up when a step is late,
// and keeps the memory that the transport may still write to.

// The transport's time to end a call whose deadline has passed, that was cancelled, or that broke.
inline constexpr absl::Duration kEndWithin = absl::Seconds(2);

// Tells whether a deadline is not in the future.
bool HasPassed(gpr_timespec deadline);

// Returns the latest end of a call: its deadline and kEndWithin. Without a deadline, never: its answer may take as long
// as the server does.
gpr_timespec LatestEnd(const grpc::ClientContext& context);
// The same for anything else that the transport is to end at a time.
gpr_timespec LatestEnd(gpr_timespec deadline);
// The same from now on, for a call that was cancelled or broke just now.
gpr_timespec HurriedEnd(gpr_timespec latest_end);

// Returns the status of a call that the transport did not end in time: CANCELLED if the thread's work is cancelled,
// else DEADLINE_EXCEEDED, and before its deadline `otherwise`.
grpc::Status EndedLate(const grpc::ClientContext& context, grpc::StatusCode otherwise);

// Returns the status of a call that nobody on this side cancelled. gRPC says CANCELLED, and nothing else, for a call
// that comes while its server stops: UNAVAILABLE, since another server may have an answer.
grpc::Status EndedByServer(grpc::Status status);

// Keeps memory that a transport may still write to until `queue`, which lies in it and to which nobody adds steps any
// more, has handed out all of its steps. FreeEnded looks for that.
void KeepUntilEnded(std::shared_ptr<void> kept, grpc::CompletionQueue* queue);
// Frees what is kept and has ended meanwhile. Costs nothing where nothing is kept. Returns how much is left.
size_t FreeEnded();
// Keeps memory for the rest of the process.
void KeepForever(std::shared_ptr<void> kept);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_TRANSPORT_END_H_
