#ifndef TENSORD_SERVER_OBSERVE_RECORDS_CALL_IDS_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_CALL_IDS_H_

#include "absl/strings/string_view.h"
#include "server/observe/records/trace_context.h"

namespace tensord::server {

// The ids that find the log lines of one call.
struct CallIds {
  absl::string_view request_id;
  TraceId trace_id{};  // zeros: the call belongs to no trace
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_CALL_IDS_H_
