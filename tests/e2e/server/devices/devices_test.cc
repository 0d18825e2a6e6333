// A server with several devices: the CPU, and one with memory of its own in the place of a GPU.
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/device_client.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> WithBoth(std::vector<std::string> more = {}) {
  more.insert(more.end(), {"devices=cpu", "devices=cuda:0"});
  return more;
}

TEST(DevicesTest, ProgramsRunOnTheDeviceThatTheyName) {
  InProcessServer server(WithBoth(), VeiledCuda());
  const v1::ExecuteRequest small = RequestOf(
      SmallAdd(), {FloatTensor(std::vector<float>(16, 1.5f), {16}), FloatTensor(std::vector<float>(16, 2), {16})});
  const v1::ExecuteRequest large = RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 0.1f), {16})});
  for (const v1::ExecuteRequest& request : {small, large}) {
    std::vector<float> on_cpu, on_cuda;
    EXPECT_EQ(RanOn(server, request, &on_cpu), "cpu:0");
    EXPECT_EQ(RanOn(server, On("cuda", request), &on_cuda), "cuda:0");
    EXPECT_EQ(RanOn(server, On("cuda:0", request)), "cuda:0");
    EXPECT_EQ(RanOn(server, On("cpu", request)), "cpu:0");
    EXPECT_EQ(RanOn(server, On("cuda:1", request)), "DEVICE_UNKNOWN");
    EXPECT_EQ(on_cpu, on_cuda);
    EXPECT_EQ(on_cpu.size(), 16u);
  }
  const v1::ServerInfo info = InfoWithCapabilities(server);
  EXPECT_THAT(DevicesIn(info), ElementsAre("cpu:0", "cuda:0"));
  int64_t on_cpu = 0, on_cuda = 0;
  for (const v1::Capability& capability : info.capabilities()) {
    on_cpu += capability.device() == "cpu:0" ? 1 : 0;
    on_cuda += capability.device() == "cuda:0" ? 1 : 0;
  }
  EXPECT_GT(on_cpu, 0);
  EXPECT_EQ(on_cpu, on_cuda);
}

TEST(DevicesTest, TheDefaultIsTheOneThatIsConfigured) {
  InProcessServer server(WithBoth({"default_device=cuda:0"}), VeiledCuda());
  EXPECT_THAT(DevicesIn(InfoWithCapabilities(server)), ElementsAre("cuda:0", "cpu:0"));
  const v1::ExecuteRequest request = RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  EXPECT_EQ(RanOn(server, request), "cuda:0");
  EXPECT_EQ(RanOn(server, On("cpu", request)), "cpu:0");
  const SessionClient session(server);
  ASSERT_EQ(PutOn(server, session, "", "x", {1, 2}), "OK");
  EXPECT_EQ(BytesOn(server, "cuda:0"), server::kHandleBytes);
  EXPECT_EQ(BytesOn(server, "cpu:0"), 0);
}

TEST(DevicesTest, ServersHaveOnlyTheDevicesThatAreConfigured) {
  InProcessServer server({"devices=cuda:0", "devices=cuda:1"}, VeiledCuda());
  EXPECT_THAT(DevicesIn(InfoWithCapabilities(server)), ElementsAre("cuda:0", "cuda:1"));
  const v1::ExecuteRequest request = RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  EXPECT_EQ(RanOn(server, On("cuda", request)), "cuda:0");
  EXPECT_EQ(RanOn(server, On("cuda:1", request)), "cuda:1");
  EXPECT_EQ(RanOn(server, On("cpu", request)), "DEVICE_UNKNOWN");
}

TEST(DevicesTest, AResidentTensorIsOfOneDevice) {
  InProcessServer server(WithBoth(), VeiledCuda());
  SessionClient session(server);
  ASSERT_EQ(PutOn(server, session, "cuda:0", "x", {1, 2, 3}), "OK");
  v1::ExecuteRequest use = session.Request(DoubleGraph());
  AddHandle(&use, "x");
  Keep(&use, "y", v1::ResultOption::DELIVERY_BOTH);
  v1::ExecuteResponse response;
  const grpc::Status refused = Execute(server.stub(), On("cpu", use), &response);
  EXPECT_EQ(ReasonOf(refused), "ARGUMENT_MISMATCH");
  EXPECT_THAT(refused.error_message(), AllOf(HasSubstr("cpu:0"), HasSubstr("cuda:0")));
  std::vector<float> doubled;
  EXPECT_EQ(RanOn(server, On("cuda", use), &doubled), "cuda:0") << "the refused request has used up nothing";
  EXPECT_THAT(doubled, ElementsAre(2, 4, 6));
  EXPECT_TRUE(WaitFor([&] { return BytesOn(server, "cuda:0") == 2 * server::kHandleBytes; }));
  EXPECT_EQ(BytesOn(server, "cpu:0"), 0) << "a kept result stays on the device of its program";
  EXPECT_EQ(server.Metric("tensord_resident_bytes", "cuda:0"), 2 * server::kHandleBytes);
  EXPECT_EQ(server.Metric("tensord_resident_tensors", "cuda:0"), 2);
  EXPECT_EQ(server.Metric("tensord_device_up", "cuda:0"), 1);

  // Downloads, and an upload under the same name to the other device.
  EXPECT_THAT(Downloaded(server, session, "y"), ElementsAre(2, 4, 6));
  EXPECT_THAT(session.Delete({"x", "y"}), IsEmpty());
  ASSERT_EQ(PutOn(server, session, "cpu", "x", {1, 2, 3}), "OK");
  EXPECT_EQ(RanOn(server, On("cpu", use)), "cpu:0");
  EXPECT_EQ(PutOn(server, session, "cuda:7", "z", {1}), "DEVICE_UNKNOWN");
}

TEST(DevicesTest, EachDeviceHasItsOwnBounds) {
  InProcessServer server(WithBoth({"sessions.device_bytes=4096", "sessions.tenant_bytes=10000",
                                   "cuda.memory_bytes=4096", "cuda.queue_length=7"}),
                         VeiledCuda());
  SessionClient session(server);
  for (const std::string device : {"cuda", "cpu"}) {
    EXPECT_EQ(PutOn(server, session, device, device, std::vector<float>(1000, 1)), "OK") << device;
    EXPECT_EQ(PutOn(server, session, device, "more", std::vector<float>(1000, 1)), "LIMIT_EXCEEDED") << device;
  }
  EXPECT_TRUE(session.Delete({"cuda", "cpu"}).empty());
  v1::ExecuteRequest request = RequestOf(DoubleGraph(), {FloatTensor(std::vector<float>(1 << 18, 1), {1 << 18})});
  EXPECT_EQ(RanOn(server, request), "cpu:0");
  v1::ExecuteResponse response;
  const grpc::Status refused = Execute(server.stub(), On("cuda", request), &response);
  EXPECT_EQ(ReasonOf(refused), "OUT_OF_MEMORY");
  EXPECT_EQ(DetailOf(refused).limit(), "cuda.memory_bytes");
  const std::string info = InfoWithCapabilities(server).DebugString();
  EXPECT_THAT(info, HasSubstr("name: \"cuda.queue_length\"\n  value: 7"));
  EXPECT_THAT(info, HasSubstr("name: \"cuda.memory_bytes\"\n  value: 4096"));
  InProcessServer without;
  EXPECT_THAT(InfoWithCapabilities(without).DebugString(), Not(HasSubstr("cuda")));
}

TEST(DevicesTest, MemoryForPlansIsMostOfTheDevices) {
  InProcessServer server(WithBoth(), VeiledCuda());
  const v1::ServerInfo info = InfoWithCapabilities(server);
  const int64_t planned = info.devices(1).memory_bytes() / 10 * 9;
  EXPECT_THAT(info.DebugString(), HasSubstr(absl::StrCat("name: \"cuda.memory_bytes\"\n  value: ", planned)));
}

TEST(DevicesTest, ADeviceThatIsNotThereEndsTheStart) {
  server::ServerConfig config;
  TemporaryFolder folder;
  config.mutable_log()->set_level("off");
  config.add_listen("unix:" + folder.path() + "/s");
  config.add_devices("cuda:1");
  const auto alone = server::Daemon::Start(config);
  EXPECT_EQ(alone.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(alone.status().message()), HasSubstr("device cuda:1 is not there"));
  server::OtherBackends none;
  none.cuda = [](int) -> absl::StatusOr<std::unique_ptr<Backend>> { return absl::UnavailableError("no driver"); };
  EXPECT_EQ(server::Daemon::Start(config, nullptr, none).status(), absl::UnavailableError("no driver"));
}

// x on f32[2,3], twice.
v1::Graph DoubleMatrix() {
  return GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 2 } shape { size: 3 } } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "y" value: "y" })");
}

TEST(DevicesTest, WhatPreparesSlowlyIsPreparedWhereProgramsAreCompiled) {
  InProcessServer server(WithBoth({"default_device=cuda:0", "compiler.threads=1"}), VeiledCuda(true));
  SessionClient session(server);
  v1::ExecuteRequest make = session.Request(GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 2 } shape { size: 3 } } }
    outputs { name: "x" value: "x" })"));
  make.mutable_options()->set_order(v1::MEMORY_ORDER_ROW_MAJOR);
  *make.add_arguments()->mutable_tensor() = FloatTensor({0, 1, 2, 3, 4, 5}, {2, 3});
  Keep(&make, "x");
  ASSERT_EQ(session.Run(make), "OK");
  v1::ExecuteRequest sent = session.Request(DoubleMatrix());
  sent.mutable_options()->set_order(v1::MEMORY_ORDER_COLUMN_MAJOR);
  *sent.add_arguments()->mutable_tensor() = FloatTensor({0, 3, 1, 4, 2, 5}, {2, 3});
  ASSERT_EQ(session.Run(sent), "OK");
  v1::ExecuteRequest use = sent;
  use.mutable_arguments(0)->set_handle("x");

  BlockedCompiler blocked(server);
  std::future<std::vector<float>> turned = std::async(std::launch::async, [&] {
    std::vector<float> values;
    EXPECT_EQ(RanOn(server, use, &values), "cuda:0");
    return values;
  });
  EXPECT_TRUE(WaitFor([&] {
    for (const auto& call : server.parts().open_calls->List()) {
      if (call.stage == server::Stage::kCompile) return true;
    }
    return false;
  })) << "it waits for the transposition's compilation";
  EXPECT_EQ(session.Run(sent), "OK") << "and holds nothing that runs programs";
  blocked.Release();
  EXPECT_THAT(turned.get(), ElementsAre(0, 6, 2, 8, 4, 10));
  BlockedCompiler again(server);
  EXPECT_EQ(RanOn(server, use), "cuda:0") << "made once";
}

// As many rows of x on f32[2,3] as its largest element says.
v1::Graph CutMatrix() {
  return GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 2 } shape { size: 3 } } }
    nodes { name: "s" inputs: "x" reduce { kind: KIND_MAX dimensions: 0 dimensions: 1 } }
    nodes { name: "k" inputs: "s" convert { dtype: DTYPE_I64 } }
    nodes { name: "y" inputs: "x" inputs: "k" dynamic_truncate { dimension: 0 } }
    nodes { name: "z" inputs: "y" inputs: "y" binary: BINARY_OP_ADD }
    outputs { name: "z" value: "z" })");
}

TEST(DevicesTest, WhatARunNeedsInItsMiddleIsPreparedWhereProgramsAreCompiled) {
  InProcessServer server(WithBoth({"default_device=cuda:0", "compiler.threads=1", "cuda.executors=1"}),
                         VeiledCuda(true));
  const auto with = [](v1::Graph graph, std::vector<float> values) {
    v1::ExecuteRequest request = RequestOf(std::move(graph), {FloatTensor(std::move(values), {2, 3})});
    request.mutable_options()->set_order(v1::MEMORY_ORDER_COLUMN_MAJOR);
    return request;
  };
  std::vector<float> values;
  ASSERT_EQ(RanOn(server, with(CutMatrix(), {0, -1, 1, -2, -3, -4}), &values), "cuda:0");
  EXPECT_THAT(values, ElementsAre(0, 2, -6));
  const v1::ExecuteRequest other = with(DoubleMatrix(), {0, 1, 2, 3, 4, 5});
  ASSERT_EQ(RanOn(server, other), "cuda:0");

  BlockedCompiler blocked(server);
  const auto start = [&] {
    return std::async(std::launch::async, [&] {
      std::vector<float> cut;
      EXPECT_EQ(RanOn(server, with(CutMatrix(), {0, -1, 2, -2, -3, -4}), &cut), "cuda:0");
      return cut;
    });
  };
  std::future<std::vector<float>> first = start(), second = start();
  const DeviceExecutor& executor = **server.parts().executors->Find("cuda:0");
  EXPECT_TRUE(WaitFor([&] { return executor.stats().running == 2; })) << "both wait for the stage";
  EXPECT_EQ(RanOn(server, other), "cuda:0") << "and hold nothing that runs programs";
  blocked.Release();
  EXPECT_THAT(first.get(), ElementsAre(0, -2, 4, -4, -6, -8));
  EXPECT_THAT(second.get(), ElementsAre(0, -2, 4, -4, -6, -8));
}

}  // namespace
}  // namespace tensord
