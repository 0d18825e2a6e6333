// Arguments and results in memory that clients share with the server.
#include <atomic>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/error_detail.h"
#include "tensord/messages.h"
#include "tests/e2e/server/session_client.h"
#include "tests/e2e/server/shared_memory/shared_memory_fixture.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;

// x of that type and y = x[indices].
v1::Graph GatherGraph() {
  return GraphOf(R"(
    inputs { name: "table" type { dtype: DTYPE_F32 shape { size: 1024 } } }
    inputs { name: "indices" type { dtype: DTYPE_I64 shape { size: 65536 } shape { size: 1 } } }
    nodes { name: "y" inputs: "table" inputs: "indices"
            gather { collapsed_slice_dims: 0 start_index_map: 0 index_vector_dim: 1 slice_sizes: 1 } }
    outputs { name: "y" value: "y" })");
}

class SharedMemoryTest : public SharedMemoryFixture {
 protected:
  // The reason of the refusal, or "OK".
  std::string Run(const v1::ExecuteRequest& request, v1::ExecuteResponse* response = nullptr) {
    v1::ExecuteResponse unused;
    return ReasonOf(Execute(server_->stub(), request, response == nullptr ? &unused : response));
  }
  v1::ExecuteRequest Double() {
    v1::ExecuteRequest request;
    *request.mutable_graph() = DoubleGraph();
    return request;
  }
};

TEST_F(SharedMemoryTest, IsOffByDefault) {
  InProcessServer server;
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
  EXPECT_FALSE(info.has_shared_memory());
  v1::ExecuteRequest request;
  *request.mutable_graph() = DoubleGraph();
  AddShared(&request, BrokerSocket::Region(), 0, v1::DTYPE_F32, {3});
  v1::ExecuteResponse response;
  EXPECT_EQ(ReasonOf(Execute(server.stub(), request, &response)), "UNSUPPORTED_REQUEST");
}

TEST_F(SharedMemoryTest, ArgumentsAndResultsLieThere) {
  InProcessServer& server = Start();
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
  EXPECT_EQ(info.shared_memory().socket(), path());
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4 * kMiB);
  const int64_t count = 1 << 18;
  std::iota(region.As<float>(64), region.As<float>(64) + count, 0.0f);
  v1::ExecuteRequest request = Double();
  AddShared(&request, region, 64, v1::DTYPE_F32, {count});
  WantIn(&request, region, 2 * kMiB, 2 * kMiB);
  v1::ExecuteResponse response;
  ASSERT_EQ(Run(request, &response), "OK");
  EXPECT_EQ(response.results(0).tensor().data(), "");
  EXPECT_THAT(response.results(0).tensor().shape(), ElementsAre(count));
  EXPECT_EQ(response.results(0).shared().region(), region.id());
  EXPECT_EQ(response.results(0).shared().offset(), 2 * kMiB);
  EXPECT_EQ(response.results(0).shared().byte_count(), count * 4);
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(region.As<float>(2 * kMiB)[i], 2 * static_cast<float>(i));
}

TEST_F(SharedMemoryTest, AResultThatDoesNotFitComesInline) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4096);
  region.As<float>()[0] = 5;
  v1::ExecuteRequest request = Double();
  AddShared(&request, region, 0, v1::DTYPE_F32, {2});
  WantIn(&request, region, 64, 7);
  v1::ExecuteResponse response;
  ASSERT_EQ(Run(request, &response), "OK");
  EXPECT_FALSE(response.results(0).has_shared());
  EXPECT_THAT(FloatsOf(response.results(0).tensor()), ElementsAre(10, 0));
}

TEST_F(SharedMemoryTest, EveryOrderAndDtypeIsReadAsInAMessage) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4096);
  const auto program = [](const char* dtype) {
    return GraphOf(std::string("inputs { name: \"x\" type { dtype: ") + dtype +
                   " shape { size: 2 } shape { size: 3 } } } outputs { name: \"x\" value: \"x\" }");
  };
  const struct {
    v1::DType dtype;
    const char* name;
    std::string data;
  } cases[] = {{v1::DTYPE_BOOL, "DTYPE_BOOL", std::string("\0\1\1\0\1\0", 6)},
               {v1::DTYPE_I32, "DTYPE_I32", std::string("abcdefghijklmnopqrstuvwx")},
               {v1::DTYPE_F32, "DTYPE_F32", std::string("abcdefghijklmnopqrstuvwx")},
               {v1::DTYPE_F16, "DTYPE_F16", std::string("abcdefghijkl")}};
  for (const auto& one : cases) {
    for (const auto order : {v1::MEMORY_ORDER_ROW_MAJOR, v1::MEMORY_ORDER_COLUMN_MAJOR}) {
      std::memcpy(region.bytes() + 128, one.data.data(), one.data.size());
      v1::ExecuteRequest shared, sent;
      *shared.mutable_graph() = *sent.mutable_graph() = program(one.name);
      AddShared(&shared, region, 128, one.dtype, {2, 3}, order);
      v1::Tensor* tensor = sent.add_arguments()->mutable_tensor();
      tensor->set_dtype(one.dtype);
      tensor->add_shape(2);
      tensor->add_shape(3);
      tensor->set_order(order);
      tensor->set_data(one.data);
      v1::ExecuteResponse by_memory, by_message;
      ASSERT_EQ(Run(shared, &by_memory), "OK");
      ASSERT_EQ(Run(sent, &by_message), "OK");
      EXPECT_EQ(by_memory.results(0).SerializeAsString(), by_message.results(0).SerializeAsString()) << one.name;
    }
  }
  region.bytes()[128] = 2;
  v1::ExecuteRequest request;
  *request.mutable_graph() = program("DTYPE_BOOL");
  AddShared(&request, region, 128, v1::DTYPE_BOOL, {2, 3});
  EXPECT_EQ(Run(request), "DATA_INVALID");
}

TEST_F(SharedMemoryTest, PlacesOutsideAreRefused) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  const auto run = [&](int64_t offset, int64_t count) {
    v1::ExecuteRequest request = Double();
    AddShared(&request, region, offset, v1::DTYPE_F32, {count});
    return Run(request);
  };
  EXPECT_EQ(run(0, kMiB / 4), "OK");
  EXPECT_EQ(run(kMiB - 64, 16), "OK");
  for (const int64_t offset : {int64_t{1}, int64_t{4}, int64_t{-64}, kMiB, kMiB - 63, kMost, kMost - 63, kLeast}) {
    EXPECT_EQ(run(offset, 16), "REGION_RANGE") << offset;
  }
  EXPECT_EQ(run(64, kMiB / 4), "REGION_RANGE");
  EXPECT_EQ(run(kMost - 63, int64_t{1} << 30), "REGION_RANGE");
  EXPECT_EQ(run(0, int64_t{1} << 46), "LIMIT_EXCEEDED");
  EXPECT_EQ(run(0, -1), "SHAPE_OVERFLOW");
  const auto result = [&](int64_t offset, int64_t byte_count) {
    v1::ExecuteRequest request = Double();
    AddShared(&request, region, 0, v1::DTYPE_F32, {4});
    WantIn(&request, region, offset, byte_count);
    return Run(request);
  };
  EXPECT_EQ(result(0, kMiB), "OK");
  EXPECT_EQ(result(64, kMiB), "REGION_RANGE");
  EXPECT_EQ(result(8, 64), "REGION_RANGE");
  EXPECT_EQ(result(0, -1), "REGION_RANGE");
  EXPECT_EQ(result(kMost - 63, kMost), "REGION_RANGE");
  EXPECT_EQ(broker.Free(region.id()), "OK");
  EXPECT_EQ(run(0, 16), "REGION_UNKNOWN");
  EXPECT_EQ(result(0, kMiB), "REGION_UNKNOWN");
}

TEST_F(SharedMemoryTest, AnotherTenantsRegionIsNone) {
  PrivateFolder secrets;
  const std::string file = secrets.Write("callers", "a execute " + Fingerprint::Of("token-a").ToHex() + "\nb execute " +
                                                        Fingerprint::Of("token-b").ToHex());
  InProcessServer& server = Start({"identity.file=" + file, "identity.trust_unix_sockets=false"});
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB, "Bearer token-a");
  const auto run = [&](const std::string& token, bool as_result) {
    v1::ExecuteRequest request = Double();
    if (as_result) {
      *request.add_arguments()->mutable_tensor() = FloatTensor({1, 2}, {2});
      WantIn(&request, region, 0, 64);
    } else {
      AddShared(&request, region, 0, v1::DTYPE_F32, {16});
    }
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::ExecuteResponse response;
    return ReasonOf(server.stub().Execute(&context, request, &response));
  };
  EXPECT_EQ(run("token-a", false), "OK");
  EXPECT_EQ(run("token-a", true), "OK");
  EXPECT_EQ(run("token-b", false), "REGION_UNKNOWN");
  EXPECT_EQ(run("token-b", true), "REGION_UNKNOWN");
}

TEST_F(SharedMemoryTest, ARunThatReadsARegionEndsWithItAlthoughItsClientIsGone) {
  InProcessServer& server = Start();
  auto broker = std::make_unique<BrokerSocket>(path());
  const BrokerSocket::Region region = broker->Take(kMiB);
  std::fill_n(region.As<float>(), 16, 1.0f);
  v1::ExecuteRequest request;
  *request.mutable_graph() = LargeSum();
  AddShared(&request, region, 0, v1::DTYPE_F32, {16});
  WantIn(&request, region, 64, 64);
  BlockedExecutor blocked(server);
  v1::ExecuteResponse response;
  auto run = std::async(std::launch::async, [&] { return Run(request, &response); });
  ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued > 0; }));
  broker.reset();
  // A range that is none is refused either way, and does not wait for the executor.
  EXPECT_TRUE(WaitFor([&] {
    v1::ExecuteRequest other = Double();
    AddShared(&other, region, 1, v1::DTYPE_F32, {16});
    return Run(other) == "REGION_UNKNOWN";
  }));
  EXPECT_EQ(server.parts().regions->stats().regions, 1) << "it is still used, and counts";
  std::fill_n(region.As<float>(), 16, 2.0f);
  blocked.Release();
  EXPECT_EQ(run.get(), "OK");
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_TRUE(response.results(0).has_shared());
  EXPECT_TRUE(WaitFor([&] { return server.parts().regions->stats().regions == 0; }));
}

TEST_F(SharedMemoryTest, NumbersThatChangeWhileARunReadsThemHurtNobodyElse) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(2 * kMiB);
  int64_t* const indices = region.As<int64_t>();
  v1::ExecuteRequest gather;
  *gather.mutable_graph() = GatherGraph();
  *gather.add_arguments()->mutable_tensor() = FloatTensor(std::vector<float>(1024, 3.0f), {1024});
  AddShared(&gather, region, 0, v1::DTYPE_I64, {65536, 1});
  v1::ExecuteRequest floats = Double();
  AddShared(&floats, region, 0, v1::DTYPE_F32, {1 << 17});
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    const int64_t wild[] = {0, 1023, -1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (size_t at = 0; !stop; ++at) {
      __atomic_store_n(&indices[at % 65536], wild[at % 5], __ATOMIC_RELAXED);
    }
  });
  for (int i = 0; i < 30; ++i) {
    v1::ExecuteResponse response;
    ASSERT_EQ(Run(gather, &response), "OK");
    ASSERT_TRUE(FloatsOf(response.results(0).tensor()) == std::vector<float>(65536, 3.0f));
    ASSERT_EQ(Run(floats), "OK");
  }
  stop = true;
  scribbler.join();
}

TEST_F(SharedMemoryTest, CopiesCountAsBytesInFlight) {
  InProcessServer& server = Start({"limits.in_flight_bytes=65536"});
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB);
  v1::ExecuteRequest gather;
  *gather.mutable_graph() = GatherGraph();
  *gather.add_arguments()->mutable_tensor() = FloatTensor(std::vector<float>(1024, 3.0f), {1024});
  AddShared(&gather, region, 0, v1::DTYPE_I64, {65536, 1});
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(server.stub(), gather, &response);
  EXPECT_EQ(DetailOf(status).limit(), "in_flight_bytes");
}

TEST_F(SharedMemoryTest, WhatIsKeptIsNotWhatTheClientWritesTo) {
  InProcessServer& server = Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB);
  SessionClient session(server);
  v1::ExecuteRequest request = session.Request(GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } } outputs { name: "x" value: "x" })"));
  std::fill_n(region.As<float>(), 4, 1.0f);
  AddShared(&request, region, 0, v1::DTYPE_F32, {4});
  Keep(&request, "x", v1::ResultOption::DELIVERY_BOTH);
  *request.mutable_results(0)->mutable_shared() = Space(region, 64, 64);
  ASSERT_EQ(session.Run(request), "OK");
  EXPECT_EQ(region.As<float>(64)[3], 1.0f);
  std::fill_n(region.As<float>(), 32, 9.0f);
  EXPECT_THAT(session.Get("x"), ElementsAre(1, 1, 1, 1));
}

TEST_F(SharedMemoryTest, StreamsUseItToo) {
  InProcessServer& server = Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4 * kMiB);
  grpc::ClientContext context;
  const auto stream = server.stub().ExecuteStream(&context);
  const int64_t count = 1 << 16;
  const auto ask = [&](uint64_t id, const std::string& name) {
    v1::ExecuteRequest request = Double();
    request.set_request_id(id);
    AddShared(&request, region, 0, v1::DTYPE_F32, {count});
    request.mutable_arguments(0)->mutable_shared()->set_region(name);
    WantIn(&request, region, 2 * kMiB, 4 * count);
    v1::ExecuteResponse response;
    EXPECT_TRUE(stream->Write(request));
    EXPECT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.request_id(), id);
    return response;
  };
  for (uint64_t id = 1; id <= 3; ++id) {
    std::fill_n(region.As<float>(), count, static_cast<float>(id));
    const v1::ExecuteResponse response = ask(id, region.id());
    ASSERT_FALSE(response.has_error()) << response.error().message();
    EXPECT_EQ(response.results(0).shared().offset(), 2 * kMiB);
    EXPECT_EQ(response.results(0).tensor().data(), "");
    EXPECT_EQ(region.As<float>(2 * kMiB)[count - 1], 2 * static_cast<float>(id));
  }
  EXPECT_EQ(ask(4, "another").error().detail().reason(), "REGION_UNKNOWN");
  EXPECT_FALSE(ask(5, region.id()).has_error()) << "the stream goes on";
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(SharedMemoryTest, AServerThatDrainsGivesNoMoreAndFinishesWhatUsesIt) {
  InProcessServer& server = Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB);
  v1::ExecuteRequest request;
  *request.mutable_graph() = LargeSum();
  std::fill_n(region.As<float>(), 16, 1.0f);
  AddShared(&request, region, 0, v1::DTYPE_F32, {16});
  WantIn(&request, region, 64, 64);
  BlockedExecutor blocked(server);
  auto run = std::async(std::launch::async, [&] { return Run(request); });
  ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued > 0; }));
  server.RequestStop();
  EXPECT_TRUE(WaitFor([&] { return broker.Allocate(1) == "SERVER_DRAINING"; }));
  blocked.Release();
  EXPECT_EQ(run.get(), "OK");
  server.WaitUntilStopped();
  EXPECT_EQ(region.As<float>(64)[0], 4096.0f);
}

TEST_F(SharedMemoryTest, TheClientUsesItByItself) {
  InProcessServer& server = Start();
  auto client = client::Client::Connect({.target = server.target(), .shared_memory = true});
  ASSERT_TRUE(client.ok()) << client.status();
  const std::shared_ptr<client::SharedMemory>& memory = (*client)->shared_memory();
  ASSERT_NE(memory, nullptr);
  const int64_t count = 1 << 18;
  const auto program = (*client)->Compile(DoubleGraph());
  ASSERT_TRUE(program.ok());
  const auto block = memory->Allocate(4 * count);
  ASSERT_TRUE(block.ok()) << block.status();
  float* const values = reinterpret_cast<float*>(block->get());
  std::iota(values, values + count, 0.0f);
  const auto there =
      client::HostTensor::FromBuffer(client::DType::kF32, {count}, client::MemoryOrder::kRowMajor, *block, 4 * count);
  const auto elsewhere = client::HostTensor::FromVector(std::vector<float>(values, values + count), {count});
  for (int round = 0; round < 3; ++round) {
    for (const client::HostTensor& tensor : {*there, *elsewhere}) {
      const auto result = (*client)->Execute(program->program().fingerprint(), {tensor});
      ASSERT_TRUE(result.ok()) << result.status();
      const client::HostTensor& output = result->outputs[0];
      EXPECT_EQ(memory->Find(output.bytes(), output.size_bytes()).has_value(),
                round > 0 || tensor.bytes() != there->bytes());
      const auto doubled = output.Values<float>();
      for (int64_t i = 0; i < count; i += 999) ASSERT_EQ((*doubled)[static_cast<size_t>(i)], 2 * static_cast<float>(i));
    }
  }
  EXPECT_LE(server.parts().regions->stats().regions, 3) << "blocks are used again";
  EXPECT_LT(server.Metric("tensord_rpc_received_bytes_total", "Execute"), 100000.0) << "nothing large was sent";
}

TEST_F(SharedMemoryTest, TheClientGoesOnInMessagesWhereRegionsAreGone) {
  InProcessServer& first = Start();
  const std::string target = first.target();
  auto client = client::Client::Connect({.target = target, .shared_memory = true});
  ASSERT_TRUE(client.ok());
  const auto block = (*client)->shared_memory()->Allocate(kMiB);
  ASSERT_TRUE(block.ok());
  const auto place = (*client)->shared_memory()->Find(block->get(), kMiB);
  first.parts().regions->Remove(place->region);  // as a new server would not know it
  std::memset(block->get(), 0, kMiB);
  const auto tensor =
      client::HostTensor::FromBuffer(client::DType::kF32, {kMiB / 4}, client::MemoryOrder::kRowMajor, *block, kMiB);
  const auto result = (*client)->Execute(DoubleGraph(), {*tensor});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE((*client)->shared_memory()->is_lost());
}

}  // namespace
}  // namespace tensord
