#include "clients/cpp/wire/execute_wire.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tensord/error_detail.h"
#include "tensord/messages.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// The bytes as the transport may hand them out: in slices of any size.
grpc::ByteBuffer InSlicesOf(size_t slice_bytes, const std::string& bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) slices.emplace_back(bytes.substr(at, slice_bytes));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

v1::Tensor ToWireTensor(const HostTensor& tensor) {
  v1::Tensor wire;
  wire.set_dtype(ToWire(tensor.dtype()));
  for (int64_t dim : tensor.shape()) wire.add_shape(dim);
  wire.set_order(ToWire(tensor.order()));
  wire.set_data(tensor.bytes(), tensor.size_bytes());
  return wire;
}

// Else who planned two looks at a second that is not there.
TEST(ExecuteWire, AnAnswerWithFewerResultsThanPlannedIsRefused) {
  v1::ExecuteResponse response;
  *response.add_results()->mutable_tensor() = ToWireTensor(HostTensor::Scalar(2.5f));
  const grpc::ByteBuffer bytes = InSlicesOf(1000, response.SerializeAsString());
  const std::vector<ResultPlan> one(1), two(2);
  EXPECT_TRUE(DecodeExecuteResponse(bytes, MemoryOrder::kRowMajor, one).ok());
  const absl::Status refused = DecodeExecuteResponse(bytes, MemoryOrder::kRowMajor, two).status();
  EXPECT_TRUE(absl::IsInternal(refused)) << refused;
}

std::vector<HostTensor> SampleTensors() {
  return {HostTensor::Scalar(2.5f), *HostTensor::FromVector(std::vector<double>(5000, 1.25), {50, 100}),
          *HostTensor::FromVector(std::vector<int64_t>{}, {3, 0}),
          *HostTensor::FromVector(std::vector<bool>{true, false}, {2}, MemoryOrder::kColumnMajor),
          *HostTensor::FromVector(std::vector<int32_t>(1 << 15, 7), {1 << 15})};
}

v1::ExecuteRequest SampleRequest() {
  v1::ExecuteRequest request;
  request.set_request_id(77);
  request.set_fingerprint(std::string(64, 'a'));
  request.mutable_options()->set_device("cpu:0");
  request.add_results()->set_delivery(v1::ResultOption::DELIVERY_INLINE);
  request.add_results()->set_handle("h");
  request.set_session("s");
  request.set_priority(-3);
  request.set_profile(true);
  return request;
}

TEST(EncodeExecuteRequest, WritesTheBytesThatProtobufWrites) {
  v1::ExecuteRequest request = SampleRequest();
  const std::vector<HostTensor> tensors = SampleTensors();
  const std::string bytes = Bytes(*EncodeExecuteRequest(request, ToArguments(tensors)));
  for (const HostTensor& tensor : tensors) *request.add_arguments()->mutable_tensor() = ToWireTensor(tensor);
  EXPECT_TRUE(bytes == request.SerializeAsString());
}

TEST(EncodeExecuteRequest, WritesTheBytesThatProtobufWritesOfAGraph) {
  v1::ExecuteRequest request;
  v1::Node* node = request.mutable_graph()->add_nodes();
  node->set_name("n0");
  node->set_unary(v1::UNARY_OP_EXP);
  const std::string without_arguments = Bytes(*EncodeExecuteRequest(request, {}));
  EXPECT_TRUE(without_arguments == request.SerializeAsString());
  EXPECT_EQ(EncodeExecuteRequest(v1::ExecuteRequest(), {})->Length(), 0u);
}

TEST(EncodeExecuteRequest, WritesTheBytesThatProtobufWritesOfHandles) {
  v1::ExecuteRequest request = SampleRequest();
  const HostTensor tensor = SampleTensors()[1];
  const std::string bytes = Bytes(*EncodeExecuteRequest(
      request, {Argument::Handle("weights"), tensor, Argument::Donated("state"), Argument::Handle("")}));
  request.add_arguments()->set_handle("weights");
  *request.add_arguments()->mutable_tensor() = ToWireTensor(tensor);
  request.add_arguments()->set_donated_handle("state");
  request.add_arguments()->set_handle("");
  EXPECT_TRUE(bytes == request.SerializeAsString());
}

TEST(EncodeExecuteRequest, RefersToPayloadsAndKeepsThemAlive) {
  grpc::ByteBuffer message;
  const char* payload;
  {
    const HostTensor tensor = *HostTensor::FromVector(std::vector<double>(5000, 1.25), {5000});
    payload = tensor.bytes();
    message = *EncodeExecuteRequest({}, {tensor});
  }
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(message.Dump(&slices).ok());
  bool is_referred_to = false;
  for (const grpc::Slice& slice : slices) {
    is_referred_to = is_referred_to || reinterpret_cast<const char*>(slice.begin()) == payload;
  }
  EXPECT_TRUE(is_referred_to);
  v1::ExecuteRequest request;
  ASSERT_TRUE(request.ParseFromString(Bytes(message)));
  EXPECT_EQ(request.arguments(0).tensor().data().size(), 40000u);
}

v1::ExecuteResponse SampleResponse() {
  v1::ExecuteResponse response;
  response.set_request_id(77);
  for (const HostTensor& tensor : SampleTensors()) *response.add_results()->mutable_tensor() = ToWireTensor(tensor);
  response.mutable_results(0)->set_handle("kept");
  response.mutable_stats()->set_device("cpu:0");
  response.mutable_stats()->set_peak_bytes(1 << 20);
  response.mutable_stats()->add_segments()->set_kernel("gemm");
  return response;
}

TEST(DecodeExecuteResponse, ReadsWhatProtobufWritesHoweverItIsSliced) {
  const v1::ExecuteResponse response = SampleResponse();
  const std::string bytes = response.SerializeAsString();
  for (const size_t slice_bytes : {size_t{1}, size_t{3}, size_t{4096}, bytes.size()}) {
    const auto reply = DecodeExecuteResponse(InSlicesOf(slice_bytes, bytes), MemoryOrder::kRowMajor);
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_EQ(reply->outputs.size(), 5u);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(ToWireTensor(*reply->outputs[static_cast<size_t>(i)].tensor).SerializeAsString(),
                response.results(i).tensor().SerializeAsString());
    }
    EXPECT_EQ(reply->stats.message().SerializeAsString(), response.stats().SerializeAsString());
  }
}

TEST(DecodeExecuteResponse, ReadsUnpackedShapesUnknownFieldsAndAnyFieldOrder) {
  // Tensor { data = "\1\0\0\0…", shape = 1 (unpacked) twice, unknown field 9, dtype = I32 }.
  const std::string tensor = std::string("\x7a\x04\x05\x00\x00\x00", 6) + "\x10\x01\x10\x01" + "\x48\x07" + "\x08\x02";
  const std::string result = std::string("\x0a") + static_cast<char>(tensor.size()) + tensor;
  const std::string response = std::string("\x12") + static_cast<char>(result.size()) + result + "\xfa\x07\x01z";
  const auto reply = DecodeExecuteResponse(InSlicesOf(2, response), MemoryOrder::kColumnMajor);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->outputs.size(), 1u);
  EXPECT_THAT(reply->outputs[0].shape, ElementsAre(1, 1));
  EXPECT_THAT(*reply->outputs[0].tensor->Values<int32_t>(), ElementsAre(5));
  EXPECT_EQ(reply->outputs[0].order, MemoryOrder::kColumnMajor);
}

TEST(DecodeExecuteResponse, ReturnsWhatThePlansSay) {
  v1::ExecuteResponse response = SampleResponse();
  response.mutable_results(0)->mutable_tensor()->clear_data();
  response.mutable_results(2)->mutable_tensor()->clear_data();
  const auto answer =
      DecodeExecuteResponse(InSlicesOf(64, response.SerializeAsString()), MemoryOrder::kRowMajor,
                            {ResultPlan::Keep("kept"), ResultPlan::Both("both"), ResultPlan::Discard()});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::vector<HostTensor> tensors = SampleTensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ExecuteOutput& output = answer->outputs[i];
    EXPECT_EQ(output.tensor.has_value(), i != 0 && i != 2) << i;
    EXPECT_EQ(output.dtype, tensors[i].dtype());
    EXPECT_EQ(output.shape, tensors[i].shape());
    EXPECT_EQ(output.order, tensors[i].order());
  }
  response.mutable_results(2)->mutable_tensor()->set_shape(0, -3);
  EXPECT_FALSE(DecodeExecuteResponse(InSlicesOf(64, response.SerializeAsString()), MemoryOrder::kRowMajor,
                                     {ResultPlan::Keep("kept"), ResultPlan::Both("both"), ResultPlan::Discard()})
                   .ok());
}

v1::ExecuteResponse SampleError() {
  v1::ExecuteResponse response;
  response.set_request_id(1234567);
  response.mutable_error()->set_code(9);
  response.mutable_error()->set_message("no such handle");
  response.mutable_error()->mutable_detail()->set_reason("HANDLE_UNKNOWN");
  return response;
}

TEST(ReadResponseHead, ReadsWhatProtobufWritesHoweverItIsSliced) {
  for (const size_t slice_bytes : {size_t{1}, size_t{7}, size_t{4096}}) {
    const auto good = ReadResponseHead(InSlicesOf(slice_bytes, SampleResponse().SerializeAsString()));
    ASSERT_TRUE(good.ok()) << good.status();
    EXPECT_EQ(good->request_id, 77u);
    EXPECT_TRUE(good->error.ok());
    const auto bad = ReadResponseHead(InSlicesOf(slice_bytes, SampleError().SerializeAsString()));
    ASSERT_TRUE(bad.ok()) << bad.status();
    EXPECT_EQ(bad->request_id, 1234567u);
    EXPECT_EQ(bad->error.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(bad->error.message(), "no such handle");
    EXPECT_EQ(GetErrorDetail(bad->error)->reason, "HANDLE_UNKNOWN");
  }
}

TEST(ReadResponseHead, AnErrorIsOneWhateverItsCode) {
  for (const int code : {0, -1, 17, 1 << 30}) {
    v1::ExecuteResponse response = SampleError();
    response.mutable_error()->set_code(code);
    const auto head = ReadResponseHead(InSlicesOf(64, response.SerializeAsString()));
    ASSERT_TRUE(head.ok());
    EXPECT_EQ(head->error.code(), absl::StatusCode::kUnknown) << code;
  }
}

TEST(ReadResponseHead, RefusesEveryTruncationAndSurvivesEveryChangedByte) {
  const std::string bytes = SampleError().SerializeAsString();
  const size_t id_ends = 4;  // where the response would be whole
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto head = ReadResponseHead(InSlicesOf(5, bytes.substr(0, size)));
    EXPECT_EQ(head.ok(), size == id_ends) << size;
  }
  const google::protobuf::LogSilencer silencer;  // text that is no UTF-8
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      const auto head = ReadResponseHead(InSlicesOf(7, changed));
      EXPECT_TRUE(head.ok() || absl::IsInternal(head.status()));
    }
  }
}

TEST(DecodeExecuteResponse, RefusesEveryTruncation) {
  v1::ExecuteResponse response;
  *response.add_results()->mutable_tensor() = ToWireTensor(HostTensor::Scalar(2.5f));
  const std::string bytes = response.SerializeAsString();
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto reply = DecodeExecuteResponse(InSlicesOf(5, bytes.substr(0, size)), MemoryOrder::kRowMajor);
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kInternal) << size;
  }
}

TEST(DecodeExecuteResponse, SurvivesEveryChangedByte) {
  v1::ExecuteResponse response;
  *response.add_results()->mutable_tensor() = ToWireTensor(HostTensor::Scalar(2.5f));
  response.mutable_stats()->set_peak_bytes(12345);
  const std::string bytes = response.SerializeAsString();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      const auto reply = DecodeExecuteResponse(InSlicesOf(7, changed), MemoryOrder::kRowMajor);
      if (!reply.ok()) {
        EXPECT_EQ(reply.status().code(), absl::StatusCode::kInternal);
      }
    }
  }
}

TEST(DecodeExecuteResponse, SaysWhatIsWrongWithAResult) {
  v1::ExecuteResponse response;
  v1::Tensor* tensor = response.add_results()->mutable_tensor();
  tensor->set_dtype(v1::DTYPE_F64);
  tensor->add_shape(2);
  tensor->set_data("short");
  const auto reply = DecodeExecuteResponse(InSlicesOf(64, response.SerializeAsString()), MemoryOrder::kRowMajor);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("f64[2], 5 bytes"));

  response.add_results()->set_handle("kept");
  response.mutable_results()->DeleteSubrange(0, 1);
  EXPECT_FALSE(DecodeExecuteResponse(InSlicesOf(64, response.SerializeAsString()), MemoryOrder::kRowMajor).ok());
}

}  // namespace
}  // namespace tensord::client
