#include "server/reflection/reflection_service.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "server/reflection/reflection_answer.h"

namespace tensord::server {
namespace {

using grpc::ByteBuffer;

constexpr const char* kPaths[] = {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
constexpr size_t kMostRequestBytes = 64 * 1024;  // they are names

// Reactions come one after the other.
class ReflectionStream final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  explicit ReflectionStream(const std::vector<std::string>& services) : services_(services) { StartRead(&request_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (request_.Length() > kMostRequestBytes) {
      return Finish({grpc::StatusCode::INVALID_ARGUMENT, "a request of reflection is longer than 64 KiB"});
    }
    reflection::ServerReflectionRequest request;
    grpc::ProtoBufferReader reader(&request_);
    if (!reader.status().ok() || !request.ParseFromZeroCopyStream(&reader)) {
      return Finish({grpc::StatusCode::INVALID_ARGUMENT, "the bytes are no request of reflection"});
    }
    const grpc::Slice answer(
        AnswerReflection(request, services_, *google::protobuf::DescriptorPool::generated_pool()).SerializeAsString());
    response_ = ByteBuffer(&answer, 1);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the client is gone"});
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

  const std::vector<std::string>& services_;
  ByteBuffer request_, response_;
};

class ReflectionService final : public grpc::Service {
 public:
  explicit ReflectionService(std::vector<std::string> services) : services_(std::move(services)) {
    for (size_t i = 0; i < std::size(kPaths); ++i) {
      const absl::string_view path = kPaths[i];
      services_.emplace_back(path.substr(1, path.rfind('/') - 1));
      // The handler that generated services use.
      using Handler = grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>;
      AddMethod(new grpc::internal::RpcServiceMethod(kPaths[i], grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
      MarkMethodRawCallback(
          i, new Handler([this](grpc::CallbackServerContext*) -> grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* {
            return new ReflectionStream(services_);
          }));
    }
  }

 private:
  std::vector<std::string> services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeReflectionService(std::vector<std::string> services) {
  return std::make_unique<ReflectionService>(std::move(services));
}

}  // namespace tensord::server
