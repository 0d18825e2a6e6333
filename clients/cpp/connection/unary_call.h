#ifndef TENSORD_CLIENTS_CPP_CONNECTION_UNARY_CALL_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_UNARY_CALL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/connection/transport_end.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/error_detail.h"

namespace tensord::client {

// Calls that wait for their answer, and not longer than kEndWithin beyond their deadline, as gRPC's own would,
// nor beyond the cancellation of the thread's work.

// The mark of a message whose place no answer has taken. gRPC leaves the message as it was, with a good status, if the
// connection lost the answer, or if the server sent none.
inline constexpr int kNoAnswerField = google::protobuf::FieldDescriptor::kMaxNumber;
inline void MarkUnanswered(google::protobuf::Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(kNoAnswerField, 1);
}
inline void MarkUnanswered(grpc::ByteBuffer*) {}  // invalid until there are bytes
inline bool IsAnswered(const google::protobuf::Message& message) {
  const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  return fields.field_count() != 1 || fields.field(0).number() != kNoAnswerField;
}
inline bool IsAnswered(const grpc::ByteBuffer& message) { return message.Valid(); }

// Waits for the call that `prepare(context, queue)` makes. A good status without an answer is UNAVAILABLE, one with an
// answer that cannot be read is INTERNAL.
template <typename Response, typename Prepare>
grpc::Status AwaitAnswer(std::unique_ptr<grpc::ClientContext> context, const Prepare& prepare, Response* response) {
  struct Transport {
    std::unique_ptr<grpc::ClientContext> context;
    grpc::CompletionQueue queue;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> call;
    Response response;
    grpc::Status status;
  };
  FreeEnded();
  if (HasPassed(context->raw_deadline())) {  // which gRPC notices later than a quick answer comes
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "the deadline had passed before the call was sent"};
  }
  auto transport = std::make_unique<Transport>();
  transport->context = std::move(context);
  transport->call = prepare(transport->context.get(), &transport->queue);
  MarkUnanswered(&transport->response);
  transport->call->StartCall();
  transport->call->Finish(&transport->response, &transport->status, nullptr);
  bool ok = false;
  if (AwaitStep(*transport->context, transport->queue, LatestEnd(*transport->context), &ok)) {
    if (transport->status.ok() && !ok) return {grpc::StatusCode::INTERNAL, "the server's answer cannot be read"};
    if (transport->status.ok() && !IsAnswered(transport->response)) {
      return {grpc::StatusCode::UNAVAILABLE, "the connection broke, and the answer was lost with it"};
    }
    response->Swap(&transport->response);
    return EndedByServer(std::move(transport->status));
  }
  grpc::Status late = EndedLate(*transport->context, grpc::StatusCode::UNAVAILABLE);
  grpc::CompletionQueue* const queue = &transport->queue;
  KeepUntilEnded(std::move(transport), queue);
  return late;
}

// UnaryCall(std::move(context), *stub, &v1::Compute::Stub::PrepareAsyncCompile, request)
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> UnaryCall(std::unique_ptr<grpc::ClientContext> context, Stub& stub,
                                   std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Stub::*prepare)(
                                       grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
                                   const Request& request) {
  Response response;
  const grpc::Status status = AwaitAnswer(
      std::move(context),
      [&](grpc::ClientContext* made, grpc::CompletionQueue* queue) { return (stub.*prepare)(made, request, queue); },
      &response);
  if (!status.ok()) return ToAbslStatus(status);
  return response;
}

// One whose messages are bytes already.
grpc::Status UnaryCall(std::unique_ptr<grpc::ClientContext> context, grpc::GenericStub& stub, const std::string& method,
                       const grpc::ByteBuffer& request, grpc::ByteBuffer* response);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_UNARY_CALL_H_
