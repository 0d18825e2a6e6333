#ifndef TENSORD_CLIENTS_CPP_WIRE_DURATION_H_
#define TENSORD_CLIENTS_CPP_WIRE_DURATION_H_

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace tensord::client {

// Returns a duration of the server's.
inline absl::Duration ToAbslDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_WIRE_DURATION_H_
