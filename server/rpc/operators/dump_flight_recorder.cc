#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "engine/base/refusal.h"
#include "engine/base/utf8.h"
#include "proto/codec/duration_codec.h"
#include "server/observe/records/flight_recorder.h"
#include "server/rpc/operators/admin_handlers.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {
namespace {

constexpr int64_t kDefaultLimit = 1000, kMostEntries = 5000;

void Encode(const FlightEntry& entry, v1::FlightEntry* message) {
  message->mutable_time()->set_seconds(entry.unix_ns / 1'000'000'000);
  message->mutable_time()->set_nanos(static_cast<int32_t>(entry.unix_ns % 1'000'000'000));
  if (entry.is_event) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(entry.text.view(), absl::MaxSplits('\n', 1));
    message->set_event(ToUtf8(parts.first));
    message->set_message(ToUtf8(parts.second));
    return;
  }
  message->set_event("request");
  message->set_method(std::string(Name(entry.method)));
  message->set_code(entry.code);
  message->set_reason(ToUtf8(entry.reason.view()));
  message->set_tenant(ToUtf8(entry.tenant.view()));
  message->set_request_id(ToUtf8(entry.text.view()));
  message->set_trace_id(ToHex(entry.trace_id));
  message->set_fingerprint(ToUtf8(entry.fingerprint.view()));
  message->set_device(ToUtf8(entry.device.view()));
  *message->mutable_total() = codec::EncodeDuration(absl::Nanoseconds(entry.total_ns));
  message->set_received_bytes(entry.received_bytes);
  message->set_sent_bytes(entry.sent_bytes);
  for (size_t i = 0; i < kNumStages; ++i) {
    if (entry.stage_us[i] < 0) continue;
    v1::StageTime* stage = message->add_stages();
    stage->set_name(std::string(kStageNames[i]));
    *stage->mutable_duration() = codec::EncodeDuration(absl::Microseconds(entry.stage_us[i]));
  }
}

}  // namespace

void HandleDumpFlightRecorder(UnaryCall* call) {
  v1::DumpFlightRecorderRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  if (request.limit() < 0) return call->Fail(Refuse(Refusal::kMalformedMessage, "the limit is negative"));
  const int64_t limit = request.limit() == 0 ? kDefaultLimit : std::min(request.limit(), kMostEntries);
  const FlightRecorder::Dump dump =
      call->parts().observers.recorder->Read(static_cast<size_t>(limit), request.notable_only());
  v1::DumpFlightRecorderResponse response;
  for (const FlightEntry& entry : dump.entries) Encode(entry, response.add_entries());
  response.set_lost(dump.lost);
  call->Reply(response);
}

}  // namespace tensord::server
