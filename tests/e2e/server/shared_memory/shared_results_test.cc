// Results that are computed in memory that their client shares with the server.
#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/session_client.h"
#include "tests/e2e/server/shared_memory/shared_memory_fixture.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kFloatsOfResult = 1 << 18;  // floats in one MiB

class SharedResultsTest : public SharedMemoryFixture {
 protected:
  // Returns the run's use of the device's memory, or the reason of the refusal.
  std::string PeakOf(const v1::ExecuteRequest& request) {
    const grpc::Status status = Execute(server_->stub(), request, &response_);
    return status.ok() ? std::to_string(response_.stats().peak_bytes()) : ReasonOf(status);
  }

  v1::ExecuteResponse response_;
};

TEST_F(SharedResultsTest, AreComputedThere) {
  if (HasVeiledDevice() || HasHostCuda()) GTEST_SKIP() << "results are computed in memory of the device, and copied";
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4 * kMiB);
  std::iota(region.As<float>(), region.As<float>() + kFloatsOfResult, 0.0f);
  v1::ExecuteRequest request = RequestOf(DoubleGraph(), {});
  AddShared(&request, region, 0, v1::DTYPE_F32, {kFloatsOfResult});
  EXPECT_EQ(PeakOf(request), std::to_string(2 * kMiB)) << "in the message";
  for (const int64_t more : {0, 640}) {
    request.clear_results();
    WantIn(&request, region, kMiB + 64, kMiB + more);
    EXPECT_EQ(PeakOf(request), std::to_string(kMiB)) << "of its argument alone";
    EXPECT_EQ(response_.results(0).shared().byte_count(), kMiB);
    for (int64_t i = 0; i < kFloatsOfResult; ++i) {
      ASSERT_EQ(region.As<float>(kMiB + 64)[i], 2 * static_cast<float>(i));
    }
  }
}

// Integers are copied before they are read; the copies are not used up for a result that has a place.
TEST_F(SharedResultsTest, AreComputedThereThoughArgumentsAreCopied) {
  if (HasVeiledDevice() || HasHostCuda()) GTEST_SKIP() << "results are computed in memory of the device, and copied";
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4 * kMiB);
  std::iota(region.As<int32_t>(), region.As<int32_t>() + kFloatsOfResult, 0);
  v1::Graph graph = DoubleGraph();
  graph.mutable_inputs(0)->mutable_type()->set_dtype(v1::DTYPE_I32);
  v1::ExecuteRequest request = RequestOf(graph, {});
  AddShared(&request, region, 0, v1::DTYPE_I32, {kFloatsOfResult});
  WantIn(&request, region, 2 * kMiB, kMiB);
  ASSERT_EQ(PeakOf(request), std::to_string(kMiB));
  for (int32_t i = 0; i < kFloatsOfResult; ++i) ASSERT_EQ(region.As<int32_t>(2 * kMiB)[i], 2 * i);
}

TEST_F(SharedResultsTest, ArgumentsThatAreResultsAreCopiedThere) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4 * kMiB);
  v1::ExecuteRequest request = RequestOf(GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 4 } } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "x" value: "x" }
    outputs { name: "y" value: "y" }
    outputs { name: "again" value: "y" })"),
                                         {FloatTensor({1, 2, 3, 4}, {4})});
  for (const int64_t place : {0, 64, 128}) WantIn(&request, region, place, 64);
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server_->stub(), request, &response).ok());
  const auto at = [&](int64_t offset) {
    return std::vector<float>(region.As<float>(offset), region.As<float>(offset) + 4);
  };
  EXPECT_THAT(at(0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(at(64), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(at(128), ElementsAre(2, 4, 6, 8));
}

// The argument is read after the first elements of the result are there.
TEST_F(SharedResultsTest, AResultMayTakeThePlaceOfItsArgument) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4 * kMiB);
  const v1::Graph transposed = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 512 } shape { size: 512 } } }
    nodes { name: "t" inputs: "x" transpose { permutation: 1 permutation: 0 } }
    nodes { name: "y" inputs: "t" inputs: "t" binary: BINARY_OP_ADD }
    outputs { name: "y" value: "y" })");
  for (const int64_t place : {int64_t{0}, int64_t{64}, kMiB - 64}) {
    std::iota(region.As<float>(), region.As<float>() + kFloatsOfResult, 0.0f);
    v1::ExecuteRequest request = RequestOf(transposed, {});
    AddShared(&request, region, 0, v1::DTYPE_F32, {512, 512});
    WantIn(&request, region, place, kMiB);
    v1::ExecuteResponse response;
    ASSERT_TRUE(Execute(server_->stub(), request, &response).ok());
    for (int64_t i = 0; i < kFloatsOfResult; ++i) {
      ASSERT_EQ(region.As<float>(place)[i], 2 * static_cast<float>(i % 512 * 512 + i / 512)) << place << " " << i;
    }
  }
}

TEST_F(SharedResultsTest, PlacesThatOverlapHoldTheLastResult) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4 * kMiB);
  v1::ExecuteRequest request = RequestOf(GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 32 } } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    nodes { name: "z" inputs: "y" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "z" value: "z" }
    outputs { name: "y" value: "y" })"),
                                         {FloatTensor(std::vector<float>(32, 1), {32})});
  WantIn(&request, region, 0, 128);
  WantIn(&request, region, 64, 128);
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server_->stub(), request, &response).ok());
  EXPECT_EQ(region.As<float>()[0], 3);
  for (int i = 16; i < 48; ++i) EXPECT_EQ(region.As<float>()[i], 2) << i;
}

TEST_F(SharedResultsTest, WhatIsKeptIsNotComputedThere) {
  InProcessServer& server = Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB);
  SessionClient session(server);
  v1::ExecuteRequest request = session.Request(DoubleGraph());
  *request.add_arguments()->mutable_tensor() = FloatTensor({1, 2}, {2});
  Keep(&request, "y", v1::ResultOption::DELIVERY_BOTH);
  *request.mutable_results(0)->mutable_shared() = Space(region, 64, 64);
  ASSERT_EQ(session.Run(request), "OK");
  EXPECT_EQ(region.As<float>(64)[1], 4);
  std::fill_n(region.As<float>(), 64, 9.0f);
  EXPECT_THAT(session.Get("y"), ElementsAre(2, 4));
}

// Indices and numbers that are also results, which the client writes over while the run reads them.
TEST_F(SharedResultsTest, WritingToThemSpoilsTheClientsOwnResultsAlone) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4 * kMiB);
  const v1::Graph graph = GraphOf(R"(
    inputs { name: "table" type { dtype: DTYPE_F32 shape { size: 1024 } } }
    inputs { name: "i" type { dtype: DTYPE_I64 shape { size: 65536 } shape { size: 1 } } }
    nodes { name: "j" inputs: "i" inputs: "i" binary: BINARY_OP_ADD }
    nodes { name: "y" inputs: "table" inputs: "j"
            gather { collapsed_slice_dims: 0 start_index_map: 0 index_vector_dim: 1 slice_sizes: 1 } }
    nodes { name: "z" inputs: "y" inputs: "y" binary: BINARY_OP_ADD }
    outputs { name: "j" value: "j" } outputs { name: "y" value: "y" } outputs { name: "z" value: "z" })");
  v1::ExecuteRequest request = RequestOf(graph, {FloatTensor(std::vector<float>(1024, 3), {1024})});
  v1::Tensor* indices = request.add_arguments()->mutable_tensor();
  indices->set_dtype(v1::DTYPE_I64);
  indices->add_shape(65536);
  indices->add_shape(1);
  indices->set_data(std::string(65536 * sizeof(int64_t), '\0'));
  WantIn(&request, region, 0, kMiB / 2);
  WantIn(&request, region, kMiB, kMiB / 4);
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    int64_t* const places = region.As<int64_t>();
    const int64_t wild[] = {-1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (size_t at = 0; !stop; ++at) {
      __atomic_store_n(&places[at % (2 * kMiB / 8)], wild[at % 3], __ATOMIC_RELAXED);
    }
  });
  for (int i = 0; i < 30; ++i) {
    v1::ExecuteResponse response;
    ASSERT_TRUE(Execute(server_->stub(), request, &response).ok());
    ASSERT_EQ(response.results(2).tensor().data().size(), 65536 * sizeof(float));
  }
  stop = true;
  scribbler.join();
  v1::ExecuteRequest other = RequestOf(DoubleGraph(), {FloatTensor({1, 2}, {2})});
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server_->stub(), other, &response).ok());
  EXPECT_THAT(FloatsOf(response.results(0).tensor()), ElementsAre(2, 4));
}

}  // namespace
}  // namespace tensord
