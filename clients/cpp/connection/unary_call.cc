#include "clients/cpp/connection/unary_call.h"

namespace tensord::client {

grpc::Status UnaryCall(std::unique_ptr<grpc::ClientContext> context, grpc::GenericStub& stub, const std::string& method,
                       const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  return AwaitAnswer(
      std::move(context),
      [&](grpc::ClientContext* made, grpc::CompletionQueue* queue) {
        return stub.PrepareUnaryCall(made, method, request, queue);
      },
      response);
}

}  // namespace tensord::client
