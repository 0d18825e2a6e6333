#include "server/rpc/calls/served_call.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "server/identity/audit.h"
#include "server/identity/method_roles.h"
#include "server/observe/records/flight_recorder.h"
#include "server/rpc/calls/call_metadata.h"
#include "server/rpc/calls/fair_polling.h"
#include "server/rpc/calls/polling_threads.h"
#include "server/rpc/wire/message_measure.h"
#include "server/rpc/wire/status_bridge.h"
#include "server/tracing/tracer.h"

namespace tensord::server {
namespace {

// Clocks of 64-bit nanoseconds, which some waits use, have three centuries.
constexpr absl::Duration kMostDeadline = absl::Hours(24 * 365 * 10);

bool IsStream(RpcMethod method) {
  return method == RpcMethod::kExecuteStream || method == RpcMethod::kGetTensor || method == RpcMethod::kPutTensor;
}

}  // namespace

ServedCall::ServedCall(const ServiceParts& parts, RpcMethod method, grpc::CallbackServerContext* context)
    : parts_(parts), context_(context) {
  record_.method = method;
  ReadCallMetadata(*context, &record_);
  if (parts.observers.tracer != nullptr) {
    parts.observers.tracer->Begin(&record_.trace);
  } else {
    record_.trace.context.sampled = false;
  }
}

void ServedCall::React() {
  parts_.admission.fair_polling->React();
  if (parts_.admission.polling != nullptr) parts_.admission.polling->React();
}

absl::Status ServedCall::Enter(int64_t request_bytes, bool is_message) {
  React();
  record_.received_bytes = request_bytes;
  parts_.observers.metrics->CallStarted(record_.method);
  // Read before the decision: one that is just being replaced is taken again.
  admitted_at_ = parts_.admission.authenticator->replaced();
  const absl::Status admitted =
      parts_.admission.authenticator->Admit(*context_, record_.method, &caller_, IdsOf(record_));
  record_.stages.End(Stage::kAuthenticate);
  RETURN_IF_ERROR(admitted);
  admitted_ = true;
  if (parts_.admission.connections != nullptr) parts_.admission.connections->Admitted(context_->peer());
  record_.tenant = caller_.tenant;
  RETURN_IF_ERROR(CheckMetadata());
  if (is_message) RETURN_IF_ERROR(CheckMessage(request_bytes));
  const absl::Status entered = EnterRequest(request_bytes);
  record_.stages.End(Stage::kAdmit);
  RETURN_IF_ERROR(entered);
  entered_ = true;
  entered_bytes_ = request_bytes;
  open_.Enter(parts_.observers.open_calls, {.method = record_.method,
                                            .tenant = record_.tenant,
                                            .request_id = record_.request_id,
                                            .peer = [this] { return context_->peer(); },
                                            .cancel = [this] { EndByOperator(); }});
  return absl::OkStatus();
}

absl::Status ServedCall::CheckMessage(int64_t message_bytes) const {
  const int64_t most = parts_.admission.message_bytes;
  return message_bytes <= most ? absl::OkStatus()
                               : RefuseLimit("message_bytes", most, message_bytes, "bytes of the message");
}

absl::StatusOr<MessageMeasure> ServedCall::Measure(const grpc::ByteBuffer& bytes,
                                                   const google::protobuf::Descriptor& type) const {
  const int64_t length = static_cast<int64_t>(bytes.Length());
  if (length < kFewSizeOperations * kLeastSizeOperationBytes) return MessageMeasure();
  absl::StatusOr<MessageMeasure> measured =
      MeasureMessage(bytes, type, BoundsOf(parts_.admission.graph_limits.now(), parts_.admission.server_limits));
  if (length >= kMeasuredFrom) return measured;
  // The reader of the message refuses it as precisely.
  if (!measured.ok()) return MessageMeasure{.size_operations = length / kLeastSizeOperationBytes};
  measured->object_bytes = 0;
  return measured;
}

absl::Status ServedCall::EnterObjects(int64_t bytes) {
  RETURN_IF_ERROR(parts_.admission.gate->bytes().Add(bytes, caller_.tenant));
  entered_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status ServedCall::CheckMetadata() const {
  const int64_t size = MetadataBytes(*context_);
  const int64_t most = parts_.admission.metadata_bytes;
  return size <= most ? absl::OkStatus() : RefuseLimit("metadata_bytes", most, size, "bytes of the call's metadata");
}

absl::Status ServedCall::AdmitAgain() {
  React();
  const int64_t now = parts_.admission.authenticator->replaced();
  if (now == admitted_at_) return absl::OkStatus();
  RETURN_IF_ERROR(parts_.admission.authenticator->AdmitAgain(*context_, record_.method, caller_, IdsOf(record_)));
  admitted_at_ = now;
  return absl::OkStatus();
}

absl::Status ServedCall::EnterRequest(int64_t request_bytes) {
  RETURN_IF_ERROR(parts_.admission.rates->Admit(caller_.tenant, SteadyNow()));
  return parts_.admission.gate->Enter(request_bytes, caller_.tenant);
}

void ServedCall::LeaveRequest(int64_t request_bytes) { parts_.admission.gate->Leave(request_bytes, caller_.tenant); }

bool ServedCall::HasDeadline() const {
  const gpr_timespec deadline = context_->raw_deadline();
  return gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) != 0;
}

std::shared_ptr<const AddedBytes> ServedCall::HoldBytes(int64_t request_bytes) {
  return std::make_shared<const AddedBytes>(
      AddedBytes::Adopt(&parts_.admission.gate->bytes(), request_bytes, caller_.tenant));
}

std::shared_ptr<const AddedBytes> ServedCall::HoldEnteredBytes() {
  if (held_bytes_ == nullptr && entered_) held_bytes_ = HoldBytes(std::exchange(entered_bytes_, 0));
  return held_bytes_;
}

absl::Time ServedCall::DeadlineOf(absl::Time arrival) const {
  if (!HasDeadline()) return arrival + parts_.admission.default_deadline;
  const gpr_timespec deadline = gpr_convert_clock_type(context_->raw_deadline(), GPR_CLOCK_REALTIME);
  const absl::Time given = absl::FromUnixSeconds(deadline.tv_sec) + absl::Nanoseconds(deadline.tv_nsec);
  return std::min(SteadyTimeOf(given), arrival + kMostDeadline);
}

grpc::Status ServedCall::Outcome(const absl::Status& ended) {
  const bool is_operators = ended.code() == absl::StatusCode::kCancelled && ended_by_operator_;
  const absl::Status status = is_operators ? Refuse(Refusal::kCancelled, "an operator ended the call") : ended;
  if (!status.ok()) record_.Refused(status);
  static const std::string* const stages_key = new std::string(kStagesTrailer);  // gRPC wants strings
  static const std::string* const id_key = new std::string(kRequestIdKey);
  context_->AddTrailingMetadata(*stages_key, record_.stages.ToText());
  context_->AddTrailingMetadata(*id_key, record_.request_id);
  has_outcome_.store(true, std::memory_order_release);
  return ToGrpcStatus(status);
}

std::string ServedCall::peer() const { return context_->peer(); }

void ServedCall::Cancelled() {
  cancel_->Cancel();
  parts_.observers.metrics->CallCancelled(record_.method);
}

void ServedCall::EndByOperator() {
  ended_by_operator_ = true;
  cancel_->Cancel();
  // A call that waits for its client, and not for the server, ends by this alone.
  if (IsStream(record_.method)) context_->TryCancel();
}

void ServedCall::Ended() {
  (void)has_outcome_.load(std::memory_order_acquire);
  open_.Leave();
  // For a stream this would be all the time since it was let in.
  if (record_.method != RpcMethod::kExecuteStream) record_.stages.End(Stage::kSend);
  record_.total = record_.stages.Total();
  parts_.observers.metrics->CallEnded(record_);
  // The audit has told of the others, as many lines as it takes; here refused callers would fill the log.
  if (admitted_) {
    const bool is_operators = RoleFor(record_.method) == Role::kAdmin;
    if (is_operators || parts_.observers.log->LogsRequests()) record_.peer = context_->peer();
    if (is_operators) parts_.observers.audit->OperatorCalled(record_, record_.peer);
    parts_.observers.recorder->Request(record_);
    if (parts_.observers.tracer != nullptr) parts_.observers.tracer->Ended(record_);
    parts_.observers.log->Request(std::move(record_));
  }
  held_bytes_ = nullptr;
  if (entered_) LeaveRequest(entered_bytes_);
}

}  // namespace tensord::server
