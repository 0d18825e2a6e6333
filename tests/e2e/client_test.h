#ifndef TENSORD_TESTS_E2E_CLIENT_TEST_H_
#define TENSORD_TESTS_E2E_CLIENT_TEST_H_

#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tests/e2e/server_binary.h"

namespace tensord::client {

// A suite of tests of the C++ client, with one server binary for all of them and a client for each. They are skipped
// where there is no binary.
class ClientTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (ServerBinary::Path().empty()) return;
    auto server = ServerBinary::Start();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = server->release();
  }
  static void TearDownTestSuite() {
    if (server_ != nullptr) {
      EXPECT_EQ(server_->Stop(), 0) << "the server did not drain";
    }
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override {
    if (ServerBinary::Path().empty()) GTEST_SKIP() << "TENSORD_BINARY is not set: no server to test against";
    ASSERT_NE(server_, nullptr);
    auto client = Client::Connect({.target = server_->target(), .deadline = absl::Minutes(2)});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  inline static ServerBinary* server_ = nullptr;
  std::unique_ptr<Client> client_;
};

}  // namespace tensord::client

#endif  // TENSORD_TESTS_E2E_CLIENT_TEST_H_
