#ifndef TENSORD_CLIENTS_LOAD_SERVER_TIMES_H_
#define TENSORD_CLIENTS_LOAD_SERVER_TIMES_H_

#include <optional>

#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"

namespace tensord::load {

// The server's account of a call's time.
struct ServerTimes {
  absl::Duration queue;
  absl::Duration compile;
  absl::Duration run;
};

// Returns the stats of an ExecuteResponse. Its results are passed over, not copied. None if the bytes are no such
// message.
std::optional<ServerTimes> ReadServerTimes(const grpc::ByteBuffer& response);

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_SERVER_TIMES_H_
