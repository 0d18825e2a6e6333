#include "clients/cpp/connection/upload_connection.h"

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::client {
namespace {

class UploadConnectionTest : public ::testing::Test {
 protected:
  static constexpr size_t kLarge = size_t{8} << 20;

  // Tells whether a call goes by a connection of its own.
  bool Serves(UploadConnection& connection, size_t bytes = kLarge) {
    bool serves = false;
    connection.Call(bytes, ordinary_, [&](grpc::GenericStub& stub) { serves = &stub != &ordinary_; });
    return serves;
  }

  FakeServer server_;
  grpc::GenericStub ordinary_{grpc::CreateChannel(server_.target(), grpc::InsecureChannelCredentials())};
};

TEST_F(UploadConnectionTest, ServesUnixSocketsWithAPath) {
  const std::string path = server_.target().substr(5);
  for (const std::string& target : {absl::StrCat("unix:", path), absl::StrCat("unix://", path)}) {
    UploadConnection connection(target);
    EXPECT_TRUE(Serves(connection)) << target;
  }
  for (const std::string& target :
       {std::string(), path, std::string("localhost:7070"), absl::StrCat("unix-abstract:", path),
        absl::StrCat("unix:", path, "%20"), absl::StrCat("unix:", path, "-nobody"),
        absl::StrCat("unix:", std::string(200, 'x'))}) {
    UploadConnection connection(target);
    EXPECT_FALSE(Serves(connection)) << target;
  }
}

TEST_F(UploadConnectionTest, ServesOneLargeCallAtATime) {
  UploadConnection connection(server_.target());
  EXPECT_FALSE(Serves(connection, kLarge - 1));
  connection.Call(kLarge, ordinary_, [&](grpc::GenericStub&) {
    EXPECT_FALSE(std::async(std::launch::async, [&] { return Serves(connection); }).get());
  });
  EXPECT_TRUE(Serves(connection));
}

TEST(UploadConnectionLifeTest, AnotherIsMadeWhenTheServerWasStartedAgain) {
  std::optional<FakeServer> server;
  const auto serve = [&server] {
    server.emplace();  // at the same path
    server->put_tensor = [](grpc::ServerContext*, grpc::ServerReader<v1::PutTensorRequest>* reader,
                            v1::PutTensorResponse* response) {
      v1::PutTensorRequest request;
      int64_t bytes = 0;
      while (reader->Read(&request)) bytes += static_cast<int64_t>(request.chunk().data().size());
      response->set_byte_count(bytes);
      return grpc::Status::OK;
    };
  };
  serve();
  const auto client = Client::Connect({.target = server->target()});
  ASSERT_TRUE(client.ok()) << client.status();
  // Large enough for it.
  const HostTensor tensor = *HostTensor::FromVector(std::vector<float>(3 << 20), {3 << 20});
  for (int round = 0; round < 3; ++round) {
    const absl::Status put = (*client)->PutTensor("s", "t", tensor);
    EXPECT_TRUE(put.ok()) << put;
    const absl::Status again = (*client)->PutTensor("s", "t", tensor);
    EXPECT_TRUE(again.ok()) << again;
    serve();
  }
}

}  // namespace
}  // namespace tensord::client
