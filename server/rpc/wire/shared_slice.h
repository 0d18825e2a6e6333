#ifndef TENSORD_SERVER_RPC_WIRE_SHARED_SLICE_H_
#define TENSORD_SERVER_RPC_WIRE_SHARED_SLICE_H_

#include <grpcpp/support/slice.h>

#include <memory>

#include "absl/strings/string_view.h"

namespace tensord::server {

// Returns a slice over bytes in place; it keeps `owner` alive.
grpc::Slice SharedSlice(absl::string_view bytes, const std::shared_ptr<const void>& owner);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_SHARED_SLICE_H_
