#ifndef TENSORD_SERVER_RPC_CALLS_UNARY_CALL_H_
#define TENSORD_SERVER_RPC_CALLS_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "server/lifecycle/added_bytes.h"
#include "server/rpc/calls/rpc_request.h"
#include "server/rpc/calls/service_parts.h"
#include "server/rpc/wire/message_measure.h"
#include "server/rpc/wire/parse_message.h"

namespace tensord::server {

// One call of a method with one request and one response, from its arrival until gRPC is done with it: the request's
// bytes and the answer.
class UnaryCall final : public grpc::ServerUnaryReactor, public RpcRequest {
 public:
  using Handler = void (*)(UnaryCall* call);
  using Refuser = absl::Status (*)(UnaryCall* call);

  // Starts the call, and returns gRPC's reactor of it. The parts outlive the call. The handler is called here if the
  // request and its answer are small, else in a turn of the tenant. `refuse_unread` refuses the request before it waits
  // for that turn; may be null.
  static grpc::ServerUnaryReactor* Start(const ServiceParts& parts, RpcMethod method,
                                         grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response, Handler handler, Refuser refuse_unread = nullptr);

  // The request, as ParseMessage reads it; or, for a handler that reads it itself, whether it may be read, and its
  // bytes.
  absl::Status Parse(google::protobuf::Message* message);
  absl::Status Admit(const google::protobuf::Descriptor& type);
  grpc::ByteBuffer* request() { return request_; }

  void Fail(const absl::Status& status) override;
  void Reply(grpc::ByteBuffer&& bytes) override;
  void Keep(std::shared_ptr<const void> remains) override { remains_ = std::move(remains); }
  void HoldUntilSent(AddedBytes bytes) override { reply_bytes_.emplace(std::move(bytes)); }
  RequestRecord& record() override { return call_.record(); }
  OpenCall& open() override { return call_.open(); }
  std::shared_ptr<const AddedBytes> HoldBytes() override { return call_.HoldEnteredBytes(); }
  void Reply(const google::protobuf::Message& message);

 private:
  UnaryCall(const ServiceParts& parts, RpcMethod method, grpc::CallbackServerContext* context,
            const grpc::ByteBuffer* request, grpc::ByteBuffer* response);
  ~UnaryCall() override = default;

  // Counts a reply in until the client has it, or the call has ended; refused as a request that is too much.
  absl::Status EnterReply(int64_t bytes);
  // Tells whether the request computes sizes for so long that it is not done in a reaction.
  bool HasManySizes(RpcMethod method);

  void OnCancel() override;
  void OnDone() override;
  // OnDone never blocks nor calls gRPC's API under a lock, so it may run where gRPC is, without waking a thread for it.
  bool InternalInlineable() override { return true; }

  const RpcMethod method_;
  ServedCall call_;
  grpc::ByteBuffer* const request_;
  grpc::ByteBuffer* const response_;
  std::shared_ptr<const void> remains_;
  std::optional<AddedBytes> reply_bytes_;
  std::optional<absl::StatusOr<MessageMeasure>> measured_;  // absent: not yet
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_UNARY_CALL_H_
