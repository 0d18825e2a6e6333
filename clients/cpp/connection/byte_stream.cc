#include "clients/cpp/connection/byte_stream.h"

#include <utility>

#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/connection/transport_end.h"
#include "grpcpp/completion_queue.h"
#include "tensord/error_detail.h"

namespace tensord::client {

struct ByteStream::Transport {
  Transport(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> its_context, const char* method)
      : context(std::move(its_context)), call(stub.PrepareCall(context.get(), method, &queue)) {}

  const std::unique_ptr<grpc::ClientContext> context;
  grpc::CompletionQueue queue;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  grpc::ByteBuffer incoming;
  grpc::Status status;
};

ByteStream::ByteStream(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context, const char* method)
    : transport_(std::make_unique<Transport>(stub, std::move(context), method)),
      latest_end_(LatestEnd(*transport_->context)) {
  transport_->call->StartCall(nullptr);
  Wait();
}

ByteStream::~ByteStream() {
  if (!is_abandoned_) return;
  grpc::CompletionQueue* const queue = &transport_->queue;
  KeepUntilEnded(std::move(transport_), queue);
}

void ByteStream::StartWrite(const grpc::ByteBuffer& message) {
  if (!is_abandoned_) transport_->call->Write(message, nullptr);
}

void ByteStream::StartRead() {
  if (!is_abandoned_) transport_->call->Read(&transport_->incoming, nullptr);
}

void ByteStream::Turn() {
  if (is_abandoned_ || ended_.has_value()) return;
  void* tag = nullptr;
  bool ok = false;
  const auto next = transport_->queue.AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
  if (next == grpc::CompletionQueue::GOT_EVENT) ended_ = ok;
}

bool ByteStream::Wait() {
  if (is_abandoned_) return false;
  std::optional<bool> ok = std::exchange(ended_, std::nullopt);
  if (!ok.has_value()) {
    is_abandoned_ = !AwaitStep(*transport_->context, transport_->queue, latest_end_, &ok.emplace());
    if (is_abandoned_) return false;
  }
  if (!*ok) latest_end_ = HurriedEnd(latest_end_);
  return *ok;
}

grpc::ByteBuffer ByteStream::TakeMessage() {
  grpc::ByteBuffer message;
  message.Swap(&transport_->incoming);
  return message;
}

void ByteStream::WritesDone() {
  if (is_abandoned_) return;
  transport_->call->WritesDone(nullptr);
  Wait();
}

void ByteStream::Cancel() {
  is_cancelled_ = true;
  latest_end_ = HurriedEnd(latest_end_);
  transport_->context->TryCancel();
}

absl::Status ByteStream::Finish() {
  if (!is_abandoned_) {
    transport_->call->Finish(&transport_->status, nullptr);
    Wait();
  }
  if (!is_abandoned_) return ToAbslStatus(is_cancelled_ ? transport_->status : EndedByServer(transport_->status));
  return ToAbslStatus(EndedLate(*transport_->context, grpc::StatusCode::UNAVAILABLE));
}

}  // namespace tensord::client
