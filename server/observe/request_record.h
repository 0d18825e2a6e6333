#ifndef TENSORD_SERVER_OBSERVE_REQUEST_RECORD_H_
#define TENSORD_SERVER_OBSERVE_REQUEST_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observe/rpc_method.h"

namespace tensord::server {

// What is told of one call when it is over: the source of its metrics and of its line in the log. Stages that the call
// did not reach are absent.
struct RequestRecord {
  RpcMethod method = RpcMethod::kExecute;
  std::string peer;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string reason;       // of a refusal: "SHAPE_MISMATCH"
  std::string message;      // likewise
  std::string limit;        // likewise, where the refusal names one
  std::string fingerprint;  // the first digits
  absl::string_view cache;  // "memory", "disk", "compiled", "joined"; empty: not asked
  std::string device;       // empty: none chosen
  std::optional<absl::Duration> decode;
  std::optional<absl::Duration> queue;
  std::optional<absl::Duration> compile;
  std::optional<absl::Duration> run;
  std::optional<absl::Duration> encode;
  absl::Duration total;
  int64_t received_bytes = 0;
  int64_t sent_bytes = 0;

  // The request ended with this refusal.
  void Refused(const absl::Status& status);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_REQUEST_RECORD_H_
