#include "server/rpc/unary_call.h"

#include <grpcpp/support/proto_buffer_writer.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "engine/base/refusal.h"
#include "server/rpc/status_bridge.h"

namespace tensord::server {

grpc::ServerUnaryReactor* UnaryCall::Start(const ServiceParts& parts, RpcMethod method,
                                           grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response, Handler handler) {
  auto* call = new UnaryCall(parts, method, context, request, response);
  parts.metrics->CallStarted(method);
  const absl::Status entered = parts.gate->Enter(call->record_.received_bytes);
  if (!entered.ok()) {
    call->Fail(entered);
    return call;
  }
  call->entered_ = true;
  call->Continue([call, handler] { handler(call); });
  return call;
}

// The request is ours alone until the call is done; gRPC hands it out as const only because typed methods may not
// change it.
UnaryCall::UnaryCall(const ServiceParts& parts, RpcMethod method, grpc::CallbackServerContext* context,
                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response)
    : parts_(parts), context_(context), request_(const_cast<grpc::ByteBuffer*>(request)), response_(response) {
  record_.method = method;
  record_.received_bytes = static_cast<int64_t>(request->Length());
}

absl::Time UnaryCall::deadline() const {
  const auto deadline = context_->deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::Now() + parts_.default_deadline;
  return absl::FromChrono(deadline);
}

absl::Status UnaryCall::CheckWanted() const {
  const auto deadline = context_->deadline();
  if (deadline <= std::chrono::system_clock::now()) {
    return Refuse(Refusal::kDeadlineExceeded, "the deadline passed before the program ran");
  }
  if (cancel_->cancelled()) return Refuse(Refusal::kCancelled, "the call was cancelled before the program ran");
  return absl::OkStatus();
}

void UnaryCall::Fail(const absl::Status& status) {
  record_.code = status.code();
  if (const auto detail = DetailOf(status)) record_.reason = detail->reason;
  record_.message = std::string(status.message());
  Finish(ToGrpcStatus(status));
}

void UnaryCall::Reply(const google::protobuf::Message& message) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t size = static_cast<int64_t>(message.ByteSizeLong());
  // Past this the serializer would abort the process.
  if (size > kMost) return Fail(RefuseLimit("response_bytes", kMost, size, "bytes of the response"));
  grpc::ByteBuffer bytes;
  {
    grpc::ProtoBufferWriter writer(&bytes, grpc::kProtoBufferWriterMaxBufferLength, static_cast<int>(size));
    if (!message.SerializeToZeroCopyStream(&writer)) return FailInternally("a response could not be serialized");
  }
  Reply(std::move(bytes));
}

void UnaryCall::Reply(grpc::ByteBuffer bytes) {
  record_.sent_bytes = static_cast<int64_t>(bytes.Length());
  response_->Swap(&bytes);
  Finish(grpc::Status::OK);
}

void UnaryCall::FailInternally(absl::string_view what) {
  parts_.log->Event(LogLevel::kError, "internal", what);
  Fail(Refuse(Refusal::kInternal, what));
}

void UnaryCall::OnCancel() {
  cancel_->Cancel();
  parts_.metrics->CallCancelled(record_.method);
}

void UnaryCall::OnDone() {
  record_.total = absl::FromChrono(std::chrono::steady_clock::now() - start_);
  parts_.metrics->CallEnded(record_);
  if (parts_.log->LogsRequests()) record_.peer = context_->peer();
  parts_.log->Request(record_);
  if (entered_) parts_.gate->Leave(record_.received_bytes);
  delete this;
}

}  // namespace tensord::server
