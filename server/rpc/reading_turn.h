#ifndef TENSORD_SERVER_RPC_READING_TURN_H_
#define TENSORD_SERVER_RPC_READING_TURN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/rpc/polling_threads.h"
#include "server/rpc/rpc_request.h"
#include "server/rpc/service_parts.h"

namespace tensord::server {

// From this many bytes on that are read, copied or written for a request it is not done in a reaction, whose threads
// are everybody's, but in a turn of its tenant.
inline constexpr int64_t kLongBytes = PollingThreads::kLongBytes;

// Has the work done in a turn of that tenant, on a thread that reads. QUEUE_FULL, and nothing is kept.
absl::Status InReadingTurn(const ServiceParts& parts, const std::string& tenant, std::function<void()> work);

// The same for a request, which is its last step until then: `read` ends it, or hands it on. It fails with QUEUE_FULL,
// or with DEADLINE_EXCEEDED or CANCELLED as soon as nobody wants it any more.
void ReadInTurn(RpcRequest* request, std::function<void()> read);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_READING_TURN_H_
