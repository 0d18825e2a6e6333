#include "tests/e2e/server/raw_stream.h"

#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensord {

RawStream::RawStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) : stub_(channel) {
  context_.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
  call_ = stub_.PrepareCall(&context_, "/" + method, &queue_);
  call_->StartCall(nullptr);
  Wait();
}

RawStream::~RawStream() {
  if (!finished_) {
    context_.TryCancel();
    Finish();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool RawStream::Wait() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

bool RawStream::Write(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  return Wait();
}

void RawStream::WritesDone() {
  call_->WritesDone(nullptr);
  Wait();
}

bool RawStream::Read(std::string* bytes) {
  grpc::ByteBuffer message;
  call_->Read(&message, nullptr);
  if (!Wait()) return false;
  bytes->clear();
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return false;
  for (const grpc::Slice& slice : slices) bytes->append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return true;
}

grpc::Status RawStream::Finish() {
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Wait();
  finished_ = true;
  return status;
}

}  // namespace tensord
