#include "server/rpc/calls/unary_call.h"

#include <grpcpp/support/proto_buffer_writer.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "server/identity/method_roles.h"
#include "server/rpc/calls/reading_turn.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

// Tells whether a small request may take as long as a program is large.
bool IsLong(RpcMethod method) { return method == RpcMethod::kExplain || method == RpcMethod::kGetProgram; }

// Returns the request type of methods whose requests may hold a graph; null for others.
const google::protobuf::Descriptor* RequestOf(RpcMethod method) {
  switch (method) {
    case RpcMethod::kCompile:
      return v1::CompileRequest::descriptor();
    case RpcMethod::kDifferentiate:
      return v1::DifferentiateRequest::descriptor();
    case RpcMethod::kExecute:
      return v1::ExecuteRequest::descriptor();
    default:
      return nullptr;
  }
}

}  // namespace

grpc::ServerUnaryReactor* UnaryCall::Start(const ServiceParts& parts, RpcMethod method,
                                           grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response, Handler handler, Refuser refuse_unread) {
  auto* call = new UnaryCall(parts, method, context, request, response);
  const int64_t bytes = static_cast<int64_t>(request->Length());
  absl::Status refused = call->call_.Enter(bytes, /*is_message=*/true);
  if (refused.ok() && refuse_unread != nullptr) refused = refuse_unread(call);
  if (!refused.ok()) {
    call->Fail(refused);
  } else if (RoleFor(method) == Role::kAdmin) {
    // Takes as long as an operator asks for. Neither tenants nor a full queue may be in the way.
    parts.admission.operators->Submit(call->caller().tenant,
                                      [call, handler] { call->Continue([call, handler] { handler(call); }); });
  } else if (method == RpcMethod::kCloseSession) {
    // Takes as long as a session is large; since it only frees, it is never refused for want of room.
    call->ContinueInTurn([call, handler] { handler(call); });
  } else if (bytes >= kLongBytes || IsLong(method)) {
    ReadInTurn(call, [call, handler] { handler(call); });
  } else {
    call->Continue([call, method, handler] {
      if (call->HasManySizes(method)) return ReadInTurn(call, [call, handler] { handler(call); });
      handler(call);
    });
  }
  return call;
}

// The request is ours alone until the call is done; gRPC hands it out as const only because typed methods may not
// change it.
UnaryCall::UnaryCall(const ServiceParts& parts, RpcMethod method, grpc::CallbackServerContext* context,
                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response)
    : RpcRequest(call_),
      method_(method),
      call_(parts, method, context),
      request_(const_cast<grpc::ByteBuffer*>(request)),
      response_(response) {}

absl::Status UnaryCall::Admit(const google::protobuf::Descriptor& type) {
  if (!measured_.has_value()) measured_ = call_.Measure(*request_, type);
  RETURN_IF_ERROR(measured_->status());
  const int64_t objects = (*measured_)->object_bytes;
  return objects == 0 ? absl::OkStatus() : call_.EnterObjects(objects);
}

bool UnaryCall::HasManySizes(RpcMethod method) {
  const google::protobuf::Descriptor* const type = RequestOf(method);
  if (type == nullptr) return false;
  measured_ = call_.Measure(*request_, *type);
  return measured_->ok() && (*measured_)->size_operations > kFewSizeOperations;
}

absl::Status UnaryCall::Parse(google::protobuf::Message* message) {
  absl::Status parsed = Admit(*message->GetDescriptor());
  if (parsed.ok()) parsed = ParseMessage(request_, message);
  record().stages.End(Stage::kParse);
  return parsed;
}

void UnaryCall::Fail(const absl::Status& status) { Finish(call_.Outcome(status)); }

absl::Status UnaryCall::EnterReply(int64_t bytes) {
  if (bytes < kCountedAnswerBytes || RoleFor(method_) == Role::kAdmin) return absl::OkStatus();
  const std::shared_ptr<const AddedBytes> own = HoldBytes();
  absl::StatusOr<AddedBytes> added = AddedBytes::Add(&call_.parts().admission.gate->bytes(), bytes,
                                                     call_.caller().tenant, own == nullptr ? 0 : own->bytes());
  if (!added.ok()) return std::move(added).status();
  HoldUntilSent(*std::move(added));
  return absl::OkStatus();
}

void UnaryCall::Reply(const google::protobuf::Message& message) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t size = static_cast<int64_t>(message.ByteSizeLong());
  // Past this the serializer would abort the process.
  if (size > kMost) return Fail(RefuseLimit("response_bytes", kMost, size, "bytes of the response"));
  if (const absl::Status entered = EnterReply(size); !entered.ok()) return Fail(entered);
  grpc::ByteBuffer bytes;
  {
    grpc::ProtoBufferWriter writer(&bytes, grpc::kProtoBufferWriterMaxBufferLength, static_cast<int>(size));
    if (!message.SerializeToZeroCopyStream(&writer)) return FailInternally("a response could not be serialized");
  }
  record().stages.End(Stage::kEncode);
  Reply(std::move(bytes));
}

void UnaryCall::Reply(grpc::ByteBuffer&& bytes) {
  open().At(Stage::kSend);
  record().sent_bytes = static_cast<int64_t>(bytes.Length());
  response_->Swap(&bytes);
  Finish(call_.Outcome(absl::OkStatus()));
}

void UnaryCall::OnCancel() { call_.Cancelled(); }

void UnaryCall::OnDone() {
  call_.Ended();
  delete this;
}

}  // namespace tensord::server
