// Pipelines of the C++ client whose tensors lie in memory that client and server share.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tensord/pipeline.h"
#include "tests/e2e/server/session_client.h"
#include "tests/e2e/server/shared_memory/shared_memory_fixture.h"
#include "tests/testlib/peers/client_values.h"

namespace tensord {
namespace {

using client::Argument;
using client::Client;
using client::ExecuteCall;
using client::HostTensor;
using client::PendingAnswer;
using client::Pipeline;
using client::ResultPlan;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr size_t kFloatsInMiB = 1 << 18;  // floats in one MiB

struct Descriptors {
  int regions = 0;
  int others = 0;
};

Descriptors OpenDescriptors() {
  Descriptors open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code is_closed;
    const std::string file = std::filesystem::read_symlink(entry.path(), is_closed).string();
    if (!is_closed) ++(absl::StartsWith(file, "/memfd:tensord-region") ? open.regions : open.others);
  }
  return open;
}

class SharedPipelineTest : public SharedMemoryFixture {
 protected:
  void StartAndConnect(std::vector<std::string> settings = {}) {
    Start(std::move(settings));
    client_ = ConnectShared(server_->target());
    session_ = client_->OpenSession()->id();
    twice_ = client_->Compile(DoubleGraph())->program().fingerprint();
  }
  std::unique_ptr<Pipeline> Open() { return client_->OpenPipeline({.session = session_}); }
  ExecuteCall Twice(Argument argument, std::vector<ResultPlan> plans = {}) const {
    return {.fingerprint = twice_, .arguments = {std::move(argument)}, .results = std::move(plans)};
  }
  HostTensor InMemory(size_t count, float value) {
    const auto block = client_->shared_memory()->Allocate(count * sizeof(float));
    EXPECT_TRUE(block.ok()) << block.status();
    std::fill_n(reinterpret_cast<float*>(block->get()), count, value);
    return *HostTensor::FromBuffer(client::DType::kF32, {static_cast<int64_t>(count)}, client::MemoryOrder::kRowMajor,
                                   *block, count * sizeof(float));
  }
  bool IsThere(const HostTensor& tensor) {
    return client_->shared_memory()->Find(tensor.bytes(), tensor.size_bytes()).has_value();
  }
  // Returns the tensor of one submission.
  HostTensor ResultOf(PendingAnswer& pending) {
    const auto answer = pending.Wait();
    EXPECT_TRUE(answer.ok()) << answer.status();
    return *answer->outputs.at(0).tensor;
  }

  std::unique_ptr<Client> client_;
  std::string session_, twice_;
};

TEST_F(SharedPipelineTest, ArgumentsAndResultsLieThere) {
  StartAndConnect();
  const HostTensor there = InMemory(kFloatsInMiB, 3), elsewhere = Floats(kFloatsInMiB, 3);
  std::unique_ptr<Pipeline> pipeline = Open();
  bool is_first = true;
  for (int round = 0; round < 3; ++round) {
    for (const HostTensor& tensor : {there, elsewhere}) {
      auto pending = pipeline->Submit(Twice(tensor));
      ASSERT_TRUE(pending.ok()) << pending.status();
      const HostTensor result = ResultOf(*pending);
      EXPECT_THAT(*result.Values<float>(), Each(6));
      EXPECT_EQ(IsThere(result), !is_first) << "once its size is known";
      is_first = false;
    }
  }
  EXPECT_TRUE(pipeline->Finish().ok());
  EXPECT_LE(Stats().regions, 4) << "blocks are used again";
  server_->WaitUntilIdle();
  EXPECT_LT(server_->Metric("tensord_rpc_received_bytes_total", "ExecuteStream"), 100000.0) << "nothing large was sent";
}

TEST_F(SharedPipelineTest, WhatACallHasLastsUntilItIsAnswered) {
  StartAndConnect();
  ASSERT_TRUE(client_->Execute(twice_, {Floats(kFloatsInMiB, 1)}).ok());
  std::unique_ptr<Pipeline> pipeline = Open();
  std::vector<PendingAnswer> pending;
  {
    BlockedExecutor blocked(*server_);
    for (int i = 0; i < 8; ++i) {
      auto one = pipeline->Submit(Twice(i % 2 == 0 ? InMemory(kFloatsInMiB, static_cast<float>(i))
                                                   : Floats(kFloatsInMiB, static_cast<float>(i))));
      ASSERT_TRUE(one.ok()) << one.status();
      pending.push_back(*std::move(one));
    }
    pipeline->Submit(Twice(Floats(kFloatsInMiB, 99))).IgnoreError();  // nobody waits for it
    blocked.Release();
  }
  for (size_t i = 0; i < pending.size(); ++i) {
    const HostTensor result = ResultOf(pending[i]);
    EXPECT_TRUE(IsThere(result));
    EXPECT_THAT(*result.Values<float>(), Each(2 * static_cast<float>(i)));
  }
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(SharedPipelineTest, KeptTensorsAndFailuresStayWithTheirCalls) {
  StartAndConnect();
  ASSERT_TRUE(client_->Execute(twice_, {Floats(kFloatsInMiB, 1)}).ok());
  const HostTensor lost = InMemory(kFloatsInMiB, 1);
  server_->parts().regions->LeaveToClients();  // as at its end
  server_->parts().regions->Remove(client_->shared_memory()->Find(lost.bytes(), lost.size_bytes())->region);
  std::unique_ptr<Pipeline> pipeline = Open();
  auto kept = pipeline->Submit(Twice(Floats(kFloatsInMiB, 2), {ResultPlan::Both("y")}));
  auto after = pipeline->Submit(Twice(Argument::Handle("y")));
  auto fails = pipeline->Submit(Twice(lost, {ResultPlan::Keep("z")}));
  auto poisoned = pipeline->Submit(Twice(Argument::Handle("z")));
  EXPECT_THAT(*ResultOf(*kept).Values<float>(), Each(4));
  EXPECT_THAT(*ResultOf(*after).Values<float>(), Each(8));
  EXPECT_EQ(ReasonOf(fails->Wait().status()), "REGION_UNKNOWN");
  const absl::Status consequence = poisoned->Wait().status();
  EXPECT_EQ(ReasonOf(consequence), "HANDLE_POISONED");
  EXPECT_THAT(std::string(consequence.message()), HasSubstr("REGION_UNKNOWN"));
  EXPECT_TRUE(client_->shared_memory()->is_lost());
  auto in_messages = pipeline->Submit(Twice(lost));
  EXPECT_THAT(*ResultOf(*in_messages).Values<float>(), Each(2));
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(SharedPipelineTest, WhatFindsNoMemoryGoesInMessages) {
  StartAndConnect({"shared_memory.region_bytes=1048576"});
  std::unique_ptr<Pipeline> pipeline = Open();
  for (int i = 0; i < 2; ++i) {
    auto pending = pipeline->Submit(Twice(Floats(kFloatsInMiB + 1, 1)));
    const HostTensor result = ResultOf(*pending);
    EXPECT_THAT(*result.Values<float>(), Each(2));
    EXPECT_FALSE(IsThere(result));
  }
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(SharedPipelineTest, AStreamThatBreaksLeavesNothing) {
  StartAndConnect();
  ASSERT_TRUE(client_->Execute(twice_, {Floats(kFloatsInMiB, 1)}).ok());
  int others = 0;
  for (int round = 0; round < 4; ++round) {
    if (round == 1) {  // what the first needs stays; what it leaves behind may still be on its way out
      ASSERT_TRUE(WaitFor([&] { return Stats().regions <= 2; })) << Stats().regions;
      others = OpenDescriptors().others;
    }
    std::vector<PendingAnswer> pending;
    std::unique_ptr<Pipeline> pipeline = Open();
    BlockedExecutor blocked(*server_);
    for (int i = 0; i < 6; ++i) {
      auto one =
          pipeline->Submit(Twice(Floats(kFloatsInMiB, 1), {ResultPlan::Both("r" + std::to_string(10 * round + i))}));
      ASSERT_TRUE(one.ok()) << one.status();
      pending.push_back(*std::move(one));
    }
    ASSERT_TRUE(WaitFor([&] { return server_->executor().stats().queued > 0; }));
    pipeline->Cancel();
    for (PendingAnswer& one : pending) EXPECT_EQ(one.Wait().status().code(), absl::StatusCode::kCancelled);
    EXPECT_FALSE(pipeline->Finish().ok());
    pipeline.reset();
    blocked.Release();
  }
  // Regions that a run may still write to were given back, and not used again.
  EXPECT_TRUE(WaitFor([&] { return Stats().regions <= 2; })) << Stats().regions;
  EXPECT_TRUE(WaitFor([&] { return OpenDescriptors().regions <= static_cast<int>(Stats().regions); }))
      << OpenDescriptors().regions << " descriptors of " << Stats().regions << " regions";
  EXPECT_TRUE(WaitFor([&] { return OpenDescriptors().others <= others; }))
      << OpenDescriptors().others << " and not " << others;
  ASSERT_TRUE(client_->CloseSession(session_).ok());
  EXPECT_TRUE(NothingIsLeft(*server_));
  {
    const auto after = client_->Execute(twice_, {Floats(kFloatsInMiB, 5)});
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_TRUE(IsThere(after->outputs[0]));
  }
  client_.reset();
  EXPECT_TRUE(WaitFor([&] { return Stats().regions == 0; })) << Stats().regions;
}

TEST_F(SharedPipelineTest, WithoutItsServerTheMemoryIsNotUsed) {
  StartAndConnect();
  const std::shared_ptr<client::SharedMemory> memory = client_->shared_memory();
  EXPECT_FALSE(memory->HasGone());
  server_.reset();
  EXPECT_TRUE(memory->HasGone());
  EXPECT_TRUE(memory->is_lost());
}

}  // namespace
}  // namespace tensord
