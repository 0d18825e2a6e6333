#include "tests/e2e/server/collector.h"

#include "gtest/gtest.h"

namespace tensord {

// One export: a message in, a message out.
class Collector::Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(Collector* collector, grpc::GenericCallbackServerContext* context) : collector_(collector), context_(context) {
    StartRead(&request_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::INTERNAL, "no message"));
    const grpc::Status status = collector_->Take(*context_, request_, &response_);
    if (!status.ok()) return Finish(status);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), status);
  }
  void OnDone() override { delete this; }

  Collector* const collector_;
  grpc::GenericCallbackServerContext* const context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

Collector::Collector(const std::string& address, Answer answer, std::shared_ptr<grpc::ServerCredentials> credentials)
    : answer_(std::move(answer)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, std::move(credentials), &port_);
  builder.RegisterCallbackGenericService(this);
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr) << address;
}

Collector::~Collector() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

grpc::ServerGenericBidiReactor* Collector::CreateReactor(grpc::GenericCallbackServerContext* context) {
  return new Call(this, context);
}

grpc::Status Collector::Take(const grpc::GenericCallbackServerContext& context, const grpc::ByteBuffer& bytes,
                             grpc::ByteBuffer* response) {
  grpc::Slice slice;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  otlp::ExportTraceServiceRequest request;
  EXPECT_TRUE(request.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  const std::lock_guard<std::mutex> lock(mutex_);
  method_ = context.method();
  metadata_.clear();
  for (const auto& [key, value] : context.client_metadata()) {
    metadata_[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
  }
  otlp::ExportTraceServiceResponse message;
  const grpc::Status status = answer_ == nullptr ? grpc::Status::OK : answer_(exports_, &message);
  ++exports_;
  if (!status.ok()) return status;
  resources_.insert(resources_.end(), request.resource_spans().begin(), request.resource_spans().end());
  const grpc::Slice answered(message.SerializeAsString());
  *response = grpc::ByteBuffer(&answered, 1);
  return status;
}

std::vector<otlp::Span> Collector::spans() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<otlp::Span> spans;
  for (const otlp::ResourceSpans& resource : resources_) {
    for (const otlp::ScopeSpans& scope : resource.scope_spans()) {
      spans.insert(spans.end(), scope.spans().begin(), scope.spans().end());
    }
  }
  return spans;
}

std::vector<otlp::ResourceSpans> Collector::resources() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return resources_;
}

int Collector::exports() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return exports_;
}

std::string Collector::method() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return method_;
}

std::string Collector::metadata(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = metadata_.find(name);
  return found == metadata_.end() ? "" : found->second;
}

}  // namespace tensord
