#ifndef TENSORD_SERVER_RPC_PROGRAMS_WARM_UP_H_
#define TENSORD_SERVER_RPC_PROGRAMS_WARM_UP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/runtime/devices/cancel_token.h"
#include "server/rpc/calls/service_parts.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// The work of a start before the server is ready, so that the first calls need not wait for the compiler. Works on the
// compile pool, and waits for it, but no longer than until the server is to stop: then the pool may still be at it.

// Brings programs back from the disk, the last used first, while there is time and room in memory. How many.
int64_t RestorePrograms(const ServiceParts& parts, absl::Duration most_time, const CancelToken& stop);

// Compiles the graph of a file, in a form that tensord.v1.Graph has in files, for the default device and for results in
// that order. The status names the file. CANCELLED if the server is to stop first.
absl::Status WarmUpGraph(const ServiceParts& parts, const std::string& path, v1::MemoryOrder order,
                         const CancelToken& stop);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_PROGRAMS_WARM_UP_H_
