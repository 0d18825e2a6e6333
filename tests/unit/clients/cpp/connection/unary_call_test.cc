// Calls whose server ends them well, and sends no answer or one that is none.
#include "clients/cpp/connection/unary_call.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::client {
namespace {

// Ends a call with OK, after these bytes if any.
class Answer : public grpc::ServerGenericBidiReactor {
 public:
  explicit Answer(const std::optional<std::string>& bytes) {
    if (!bytes.has_value()) {
      Finish(grpc::Status::OK);
      return;
    }
    const grpc::Slice slice(*bytes);
    message_ = grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class AnsweringServer : private grpc::CallbackGenericService {
 public:
  explicit AnsweringServer(std::optional<std::string> bytes) : bytes_(std::move(bytes)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~AnsweringServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  absl::StatusOr<v1::ServerInfo> Ask() const {
    const auto stub = v1::Compute::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials()));
    return UnaryCall(std::make_unique<grpc::ClientContext>(), *stub, &v1::Compute::Stub::PrepareAsyncGetServerInfo,
                     v1::GetServerInfoRequest());
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Answer(bytes_);
  }

  const std::optional<std::string> bytes_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(UnaryCall, AnEmptyMessageIsAnAnswer) {
  const auto info = AnsweringServer("").Ask();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->ByteSizeLong(), 0);
}

TEST(UnaryCall, AGoodStatusWithoutAnAnswerIsNone) {
  const absl::Status lost = AnsweringServer(std::nullopt).Ask().status();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
}

TEST(UnaryCall, AGoodStatusWithBytesThatAreNoMessageIsNoAnswer) {
  for (const std::string& bytes : {std::string(20, '\xff'),
                                   std::string("\x0a\x05"
                                               "ab"),
                                   std::string("\x0f")}) {
    const absl::Status unreadable = AnsweringServer(bytes).Ask().status();
    EXPECT_TRUE(absl::IsInternal(unreadable)) << unreadable;
  }
}

}  // namespace
}  // namespace tensord::client
