// Clients whose connection breaks in the middle of a tensor, and what they make of it.
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "clients/cpp/connection/retry_backoff.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/error_detail.h"
#include "tensord/messages.h"
#include "tests/e2e/server/breaking_proxy.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/mebibyte.h"

namespace tensord {
namespace {

using client::Client;
using client::HostTensor;

HostTensor RandomTensor(size_t floats) {
  std::mt19937 random(1);
  std::vector<float> values(floats);
  for (float& value : values) value = static_cast<float>(random());
  return *HostTensor::FromVector(values, {static_cast<int64_t>(floats)});
}

class ResumedTransferTest : public ::testing::Test {
 protected:
  ResumedTransferTest() : session_(*server_.parts().sessions->Open("default", absl::ZeroDuration())) {}

  // A client behind a proxy that breaks its connections.
  std::unique_ptr<Client> Behind(std::vector<int64_t> budgets) {
    const std::string path = server_.socket_path() + "-proxy";
    proxy_ = std::make_unique<BreakingProxy>(path, server_.socket_path(), std::move(budgets));
    auto client = Client::Connect({.target = "unix:" + path});
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  void ExpectSame(const absl::StatusOr<HostTensor>& got, const HostTensor& expected) {
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size_bytes(), expected.size_bytes());
    EXPECT_EQ(std::memcmp(got->bytes(), expected.bytes(), expected.size_bytes()), 0);
  }

  InProcessServer server_;
  const server::SessionPtr session_;
  std::unique_ptr<BreakingProxy> proxy_;
};

TEST_F(ResumedTransferTest, AnUploadGoesOnAtTheByteThatTheServerHas) {
  const HostTensor tensor = RandomTensor(8 * kMiB);  // 32 MiB
  // Uses a connection of its own while much is left. The first call asks for the received bytes.
  const auto client = Behind({kMiB, 4 * kMiB, 22 * kMiB});
  const absl::Status put = client->PutTensor(session_->id(), "t", tensor);
  ASSERT_TRUE(put.ok()) << put;
  EXPECT_EQ(proxy_->connections(), 4);
  EXPECT_LT(proxy_->bytes(), 45 * kMiB) << "what was there was sent again";
  const auto direct = Client::Connect({.target = server_.target()});
  ASSERT_TRUE(direct.ok());
  ExpectSame((*direct)->GetTensor(session_->id(), "t"), tensor);
}

TEST_F(ResumedTransferTest, LargeUploadsHaveAConnectionThatIsKept) {
  const HostTensor tensor = RandomTensor(3 * kMiB);
  const auto client = Behind({});
  const auto put = [&](const std::string& handle) {
    const absl::Status status = client->PutTensor(session_->id(), handle, tensor);
    EXPECT_TRUE(status.ok()) << status;
  };
  put("1");
  put("2");
  EXPECT_EQ(proxy_->connections(), 2);
  proxy_->Break();
  while (proxy_->open_connections() > 0) absl::SleepFor(absl::Milliseconds(1));
  while (!client->GetServerInfo().ok()) absl::SleepFor(absl::Milliseconds(1));
  put("3");
  put("4");
  EXPECT_EQ(proxy_->connections(), 4);
}

TEST_F(ResumedTransferTest, ADownloadGoesOnAtTheByteThatTheClientHas) {
  const HostTensor tensor = RandomTensor(8 * kMiB);
  const auto direct = Client::Connect({.target = server_.target()});
  ASSERT_TRUE(direct.ok());
  ASSERT_TRUE((*direct)->PutTensor(session_->id(), "t", tensor).ok());
  const auto client = Behind({24 * kMiB, kMiB / 2, 3 * kMiB});
  ExpectSame(client->GetTensor(session_->id(), "t"), tensor);
  EXPECT_EQ(proxy_->connections(), 4);
  EXPECT_LT(proxy_->bytes(), 45 * kMiB) << "what was there was sent again";
}

TEST_F(ResumedTransferTest, TheDeadlineIsThatOfAllAttempts) {
  const HostTensor tensor = RandomTensor(kMiB);
  const auto client = Behind(std::vector<int64_t>(100, 200'000));
  client::ExecuteOptions options;
  options.deadline = absl::Milliseconds(300);
  const absl::Time begin = absl::Now();
  const absl::Status put = client->PutTensor(session_->id(), "t", tensor, options);
  EXPECT_TRUE(absl::IsUnavailable(put) || absl::IsDeadlineExceeded(put)) << put;
  EXPECT_LE(proxy_->connections(), 4) << "the pauses grow";
  // However slow the machine is, it is no second set of attempts.
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
}

TEST_F(ResumedTransferTest, WhatTheServerRefusesIsNotTriedAgain) {
  const auto client = Behind({});
  const HostTensor tensor = RandomTensor(1000);
  ASSERT_TRUE(client->PutTensor(session_->id(), "t", tensor).ok());
  const absl::Status again = client->PutTensor(session_->id(), "t", tensor);
  EXPECT_EQ(client::GetErrorDetail(again)->reason, "HANDLE_DUPLICATE");
  const absl::Status nobody = client->PutTensor("nobody", "t", tensor);
  EXPECT_EQ(client::GetErrorDetail(nobody)->reason, "SESSION_UNKNOWN");
  EXPECT_EQ(client::GetErrorDetail(client->GetTensor(session_->id(), "x").status())->reason, "HANDLE_UNKNOWN");
  EXPECT_EQ(proxy_->connections(), 1);
}

TEST_F(ResumedTransferTest, AnAnswerThatIsLostIsAskedForAgain) {
  const HostTensor tensor = RandomTensor(1000), other = *HostTensor::FromVector(std::vector<float>(1000, 3), {1000});
  const auto client = Behind({});
  const auto direct = Client::Connect({.target = server_.target()});
  ASSERT_TRUE(direct.ok());
  for (const bool is_replaced : {false, true}) {
    const std::string handle = is_replaced ? "replaced" : "kept";
    ASSERT_TRUE(client->GetServerInfo().ok());  // connected
    proxy_->Mute();
    auto put = std::async(std::launch::async, [&] { return client->PutTensor(session_->id(), handle, tensor); });
    while (!(*direct)->GetTensor(session_->id(), handle).ok()) absl::SleepFor(absl::Milliseconds(1));
    if (is_replaced) {
      session_->Delete(std::vector<std::string>{handle});
      ASSERT_TRUE((*direct)->PutTensor(session_->id(), handle, other).ok());
    }
    proxy_->Break();
    const absl::Status status = put.get();
    if (is_replaced) {
      ASSERT_TRUE(client::GetErrorDetail(status).has_value()) << status;
      EXPECT_EQ(client::GetErrorDetail(status)->reason, "HANDLE_DUPLICATE");
    } else {
      EXPECT_TRUE(status.ok()) << status;
    }
    ExpectSame((*direct)->GetTensor(session_->id(), handle), is_replaced ? other : tensor);
  }
  EXPECT_EQ(proxy_->connections(), 3);
}

TEST_F(ResumedTransferTest, WhatStayedOfAnUploadThatWasRefusedInTheMiddleIsTakenAway) {
  const auto client = Behind({});
  std::vector<uint8_t> bytes(static_cast<size_t>(3 * kMiB), 1);
  const std::shared_ptr<char> memory(reinterpret_cast<char*>(bytes.data()), [](char*) {});
  const auto bools =
      HostTensor::FromBuffer(client::DType::kBool, {3 * kMiB}, client::MemoryOrder::kRowMajor, memory, bytes.size());
  ASSERT_TRUE(bools.ok()) << bools.status();
  bytes[static_cast<size_t>(2 * kMiB + 5)] = 2;  // which the client would have refused before
  const absl::Status put = client->PutTensor(session_->id(), "t", *bools);
  ASSERT_TRUE(client::GetErrorDetail(put).has_value()) << put;
  EXPECT_EQ(client::GetErrorDetail(put)->reason, "DATA_INVALID");
  const HostTensor other = RandomTensor(1000);
  EXPECT_TRUE(client->PutTensor(session_->id(), "t", other).ok());
  ExpectSame(client->GetTensor(session_->id(), "t"), other);
}

TEST(RetryBackoffTest, PausesGrowAndAttemptsEnd) {
  client::RetryBackoff backoff;
  const absl::Time now = absl::Now();
  const auto use_up = [&] {
    absl::Duration expected = client::RetryBackoff::kFirstPause;
    for (int i = 1; i < client::RetryBackoff::kMostAttempts; ++i) {
      const std::optional<absl::Duration> pause = backoff.Next(now, absl::InfiniteFuture());
      ASSERT_TRUE(pause.has_value()) << i;
      EXPECT_GE(*pause, 0.8 * expected);
      EXPECT_LE(*pause, 1.2 * expected);
      expected = std::min(2 * expected, client::RetryBackoff::kLongestPause);
    }
    EXPECT_FALSE(backoff.Next(now, absl::InfiniteFuture()).has_value());
  };
  use_up();
  backoff.Progress();
  use_up();
  backoff.Progress();
  EXPECT_FALSE(backoff.Next(now, now + absl::Milliseconds(50)).has_value()) << "the deadline comes first";
}

}  // namespace
}  // namespace tensord
