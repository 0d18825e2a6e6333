#ifndef TENSORD_SERVER_OBSERVE_RECORDS_REQUEST_RECORD_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_REQUEST_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/exec/binding/segment_profile.h"
#include "server/observe/records/rpc_method.h"
#include "server/observe/records/stage_times.h"
#include "server/observe/records/trace_context.h"

namespace tensord::server {

// The place of a call in a trace.
struct CallTrace {
  TraceContext context;  // all zeros: the call belongs to none; the span is the call's own where it is sampled
  SpanId parent{};       // the caller's span; zeros: none
  std::string state;     // tracestate, to be passed on
  bool is_sampled() const { return context.sampled; }
};

// The record of one call when it is over: the source of its metrics, of its line in the log, its spans and its entry in
// the flight recorder.
struct RequestRecord {
  RpcMethod method = RpcMethod::kExecute;
  bool is_streamed = false;  // one request of an ExecuteStream
  std::string peer;
  std::string request_id;  // the client's x-request-id, or the server's own
  std::string tenant;      // empty: nobody knows who called
  CallTrace trace;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string reason;       // of a refusal: "SHAPE_MISMATCH"
  std::string message;      // likewise
  std::string limit;        // likewise, where the refusal names one
  std::string fingerprint;  // the first digits
  absl::string_view cache;  // "memory", "disk", "compiled", "joined"; empty: not asked
  std::string device;       // empty: none chosen
  StageTimes stages;
  std::vector<SegmentProfile> segments;  // of the run, the first ones; only where the call is sampled
  absl::Duration total;
  int64_t received_bytes = 0;
  int64_t sent_bytes = 0;

  // The request ended with this refusal.
  void Refused(const absl::Status& status);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_REQUEST_RECORD_H_
