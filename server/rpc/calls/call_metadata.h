#ifndef TENSORD_SERVER_RPC_CALLS_CALL_METADATA_H_
#define TENSORD_SERVER_RPC_CALLS_CALL_METADATA_H_

#include <grpcpp/server_context.h>

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/observe/records/call_ids.h"
#include "server/observe/records/request_record.h"

namespace tensord::server {

// Metadata of calls, beside that of identity. Each call's trailers give its times, as StageTimes::ToText, and its id in
// the log.
inline constexpr char kStagesTrailer[] = "x-tensord-stage-us";
inline constexpr char kRequestIdKey[] = "x-request-id";  // of the client too
inline constexpr char kTraceparentKey[] = "traceparent";
inline constexpr char kTracestateKey[] = "tracestate";

// Returns true for a text that a client may choose as its request id: 1 to 128 printable ASCII characters without
// spaces.
bool IsRequestId(absl::string_view id);

// Returns the bytes of all names and values, as HTTP/2 counts them.
int64_t MetadataBytes(const grpc::CallbackServerContext& context);

// Takes the request id, or makes one, and the trace that the call belongs to. A malformed or repeated value counts as
// absent.
void ReadCallMetadata(const grpc::CallbackServerContext& context, RequestRecord* record);

// Views of the record.
CallIds IdsOf(const RequestRecord& record);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_CALL_METADATA_H_
