#ifndef TENSORD_SERVER_RPC_UNARY_CALL_H_
#define TENSORD_SERVER_RPC_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <exception>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/runtime/run.h"
#include "google/protobuf/message.h"
#include "server/identity/caller.h"
#include "server/observe/request_record.h"
#include "server/rpc/parse_message.h"
#include "server/rpc/service_parts.h"

namespace tensord::server {

// One call of a method with one request and one response, from its arrival until gRPC is done with it: admission, the
// request's bytes, deadline and cancellation, the answer, and what is told of it afterwards. Owns itself.
//
// A handler gets the call on a gRPC thread, must not block, and ends it, there or on any other thread, with exactly one
// Fail or Reply. Until then the call exists; afterwards it must not be touched. What a library throws on the way is
// caught here and becomes INTERNAL.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  using Handler = void (*)(UnaryCall* call);

  // What gRPC wants back from a method. The parts outlive the call.
  static grpc::ServerUnaryReactor* Start(const ServiceParts& parts, RpcMethod method,
                                         grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response, Handler handler);

  const ServiceParts& parts() const { return parts_; }
  const Caller& caller() const { return caller_; }
  RequestRecord& record() { return record_; }
  // The client's, or the server's default.
  absl::Time deadline() const;
  // Set when the client cancels or goes away.
  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }
  // CANCELLED or DEADLINE_EXCEEDED where it is no use to go on.
  absl::Status CheckWanted() const;

  // The request, as ParseMessage reads it; or its bytes, for a handler that reads them itself.
  absl::Status Parse(google::protobuf::Message* message) { return ParseMessage(request_, message); }
  grpc::ByteBuffer* request() { return request_; }

  void Fail(const absl::Status& status);
  void Reply(const google::protobuf::Message& message);
  void Reply(grpc::ByteBuffer bytes);

  // Runs a continuation of the handler on another thread. It ends the call, or hands it on, as its last step.
  template <typename Continuation>
  void Continue(Continuation&& continuation) {
    try {
      continuation();
    } catch (const std::exception& error) {
      FailInternally(error.what());
    }
  }

 private:
  UnaryCall(const ServiceParts& parts, RpcMethod method, grpc::CallbackServerContext* context,
            const grpc::ByteBuffer* request, grpc::ByteBuffer* response);
  ~UnaryCall() override = default;

  void OnCancel() override;
  void OnDone() override;
  // OnDone never blocks nor calls gRPC's API under a lock, so it may run where gRPC is, without waking a thread for it.
  bool InternalInlineable() override { return true; }
  void FailInternally(absl::string_view what);

  const ServiceParts& parts_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const request_;
  grpc::ByteBuffer* const response_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  const Caller caller_;
  bool entered_ = false;  // the gate
  RequestRecord record_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_UNARY_CALL_H_
