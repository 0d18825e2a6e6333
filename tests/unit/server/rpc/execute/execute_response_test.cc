#include "server/rpc/execute/execute_response.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/rpc/wire/wire_bytes.h"
#include "tests/testlib/peers/byte_slices.h"

namespace tensord::server {
namespace {

absl::StatusOr<grpc::ByteBuffer> Encode(uint64_t request_id, Order order, absl::Span<const RunTensor> results,
                                        const google::protobuf::RepeatedPtrField<v1::ResultOption>& options,
                                        const v1::ExecutionStats& stats, const std::vector<bool>& placed = {}) {
  grpc::ByteBuffer response;
  const absl::Status encoded = EncodeExecuteResponse(request_id, order, results, options, stats, placed, &response);
  if (!encoded.ok()) return encoded;
  return response;
}

RunTensor Tensor(DType dtype, Shape shape, char fill) {
  RunTensor tensor;
  tensor.type = {dtype, std::move(shape)};
  const size_t size = static_cast<size_t>(tensor.type.num_bytes());
  const std::shared_ptr<char[]> bytes(new char[size + 1]);
  std::memset(bytes.get(), fill, size);
  tensor.bytes = std::shared_ptr<const void>(bytes, bytes.get());
  return tensor;
}

google::protobuf::RepeatedPtrField<v1::ResultOption> Options(std::vector<v1::ResultOption::Delivery> deliveries) {
  google::protobuf::RepeatedPtrField<v1::ResultOption> options;
  for (const auto delivery : deliveries) options.Add()->set_delivery(delivery);
  return options;
}

v1::Result ExpectedResult(const RunTensor& tensor, Order order, bool discarded) {
  v1::Result result;
  v1::Tensor* wire = result.mutable_tensor();
  wire->set_dtype(static_cast<v1::DType>(tensor.type.dtype));
  std::vector<int64_t> shape(tensor.type.shape.begin(), tensor.type.shape.end());
  if (order == Order::kRowMajor) shape.assign(tensor.type.shape.rbegin(), tensor.type.shape.rend());
  wire->mutable_shape()->Assign(shape.begin(), shape.end());
  wire->set_order(static_cast<v1::MemoryOrder>(order));
  if (!discarded) wire->set_data(tensor.bytes.get(), static_cast<size_t>(tensor.type.num_bytes()));
  return result;
}

// Returns tensors of lengths around those at which the length's own encoding grows, and around the size from which
// memory is shared.
std::vector<RunTensor> Samples() {
  std::vector<RunTensor> samples;
  for (const int64_t size : {0, 1, 15, 16, 100, 126, 127, 128, 4095, 4096, 4097, 16383, 16384, 300000}) {
    samples.push_back(Tensor(DType::kBool, {size}, 'a'));
  }
  samples.push_back(Tensor(DType::kF64, {}, 'b'));
  samples.push_back(Tensor(DType::kC128, {3, 1, 500}, 'c'));
  samples.push_back(Tensor(DType::kBF16, {2, 0, 70000}, 'd'));
  return samples;
}

TEST(ExecuteResponseTest, BytesAreThoseOfProtobuf) {
  v1::ExecutionStats stats;
  stats.set_device("cpu:0");
  stats.mutable_run_time()->set_nanos(5);
  for (const Order order : {Order::kColumnMajor, Order::kRowMajor}) {
    for (const uint64_t id : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      const std::vector<RunTensor> results = Samples();
      const auto options = Options(
          {v1::ResultOption::DELIVERY_INLINE, v1::ResultOption::DELIVERY_INLINE, v1::ResultOption::DELIVERY_DISCARD});
      v1::ExecuteResponse expected;
      expected.set_request_id(id);
      for (size_t i = 0; i < results.size(); ++i) *expected.add_results() = ExpectedResult(results[i], order, i == 2);
      *expected.mutable_stats() = stats;

      const auto encoded = Encode(id, order, results, options, stats);
      ASSERT_TRUE(encoded.ok()) << encoded.status();
      EXPECT_TRUE(Flatten(*encoded) == expected.SerializeAsString());
    }
  }
}

TEST(ExecuteResponseTest, NoResults) {
  const auto encoded = Encode(7, Order::kColumnMajor, {}, {}, v1::ExecutionStats());
  ASSERT_TRUE(encoded.ok());
  v1::ExecuteResponse response;
  ASSERT_TRUE(response.ParseFromString(Flatten(*encoded)));
  EXPECT_EQ(response.request_id(), 7u);
  EXPECT_TRUE(response.has_stats());
}

TEST(ExecuteResponseTest, TheBufferKeepsTheResultAliveWithoutACopy) {
  RunTensor tensor = Tensor(DType::kF32, {4096}, 'x');
  const void* const address = tensor.bytes.get();
  const std::weak_ptr<const void> watch = tensor.bytes;
  {
    auto encoded = Encode(0, Order::kColumnMajor, {&tensor, 1}, {}, v1::ExecutionStats());
    ASSERT_TRUE(encoded.ok());
    tensor.bytes.reset();
    EXPECT_FALSE(watch.expired());
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(encoded->Dump(&slices).ok());
    bool shared = false;
    for (const grpc::Slice& slice : slices) shared |= slice.begin() == address;
    EXPECT_TRUE(shared);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(ExecuteResponseTest, RefusesWhatProtobufCannotHold) {
  // The size alone decides: nothing is read before it is known.
  RunTensor tensor;
  tensor.type = {DType::kF64, {1 << 14, 1 << 14}};
  tensor.bytes = std::make_shared<int>(0);
  std::vector<RunTensor> results = {tensor};
  const auto refused = Encode(0, Order::kColumnMajor, results, {}, v1::ExecutionStats());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const auto discarded =
      Encode(0, Order::kColumnMajor, results, Options({v1::ResultOption::DELIVERY_DISCARD}), v1::ExecutionStats());
  EXPECT_TRUE(discarded.ok());
}

TEST(WireBytesTest, VarintSizesMatchWhatIsWritten) {
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{16383}, uint64_t{16384}, ~uint64_t{0}}) {
    std::string bytes;
    AppendVarint(value, &bytes);
    EXPECT_EQ(static_cast<int64_t>(bytes.size()), VarintSize(value)) << value;
  }
}

TEST(ExecuteResponseTest, KeptResultsCarryTheirHandle) {
  const std::vector<RunTensor> results = Samples();
  google::protobuf::RepeatedPtrField<v1::ResultOption> options;
  v1::ExecuteResponse expected;
  for (size_t i = 0; i < results.size(); ++i) {
    v1::ResultOption* option = options.Add();
    option->set_delivery(i % 2 == 0 ? v1::ResultOption::DELIVERY_KEEP : v1::ResultOption::DELIVERY_BOTH);
    option->set_handle(std::string(i * 17 + 1, 'h'));
    *expected.add_results() = ExpectedResult(results[i], Order::kColumnMajor, /*discarded=*/i % 2 == 0);
    expected.mutable_results(static_cast<int>(i))->set_handle(option->handle());
  }
  expected.mutable_stats()->set_device("cpu:0");
  const auto response = Encode(0, Order::kColumnMajor, results, options, expected.stats());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(Flatten(*response), expected.SerializeAsString());
}

}  // namespace
}  // namespace tensord::server
