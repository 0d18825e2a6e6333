#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/wire/execute_wire.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/require.h"

namespace tensord {
namespace {

using client::ResultPlan;

// In slices of a few bytes, as the transport may hand them out.
grpc::ByteBuffer InSlices(absl::string_view bytes) {
  std::vector<grpc::Slice> slices;
  const size_t most = 1 + bytes.size() % 11;
  for (size_t at = 0; at < bytes.size(); at += most) slices.emplace_back(std::string(bytes.substr(at, most)));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

void CheckHead(const client::ResponseHead& head, const v1::ExecuteResponse& expected) {
  Require(head.request_id == expected.request_id(), "a response is its request's");
  Require(head.error.ok() != expected.has_error(), "an error is one", head.error);
  if (!head.error.ok()) Require(head.error.message() == expected.error().message(), "it says what the server says");
}

void CheckAnswer(const client::ExecuteAnswer& answer, const v1::ExecuteResponse& expected) {
  Require(static_cast<int>(answer.outputs.size()) == expected.results_size(), "each result is one");
  for (int i = 0; i < expected.results_size(); ++i) {
    const client::ExecuteOutput& output = answer.outputs[static_cast<size_t>(i)];
    const v1::Tensor& tensor = expected.results(i).tensor();
    Require(static_cast<int>(output.dtype) == static_cast<int>(tensor.dtype()), "the dtype is what was sent");
    Require(std::equal(output.shape.begin(), output.shape.end(), tensor.shape().begin(), tensor.shape().end()),
            "the shape is what was sent");
    if (!output.tensor.has_value()) continue;
    Require(absl::string_view(output.tensor->bytes(), output.tensor->size_bytes()) == tensor.data(),
            "the data is what was sent");
  }
}

}  // namespace

void FuzzExecuteResponse(absl::string_view bytes) {
  const google::protobuf::LogSilencer silent;
  v1::ExecuteResponse expected;
  const bool is_response = expected.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const grpc::ByteBuffer buffer = InSlices(bytes);
  const absl::StatusOr<client::ResponseHead> head = client::ReadResponseHead(buffer);
  Require(head.ok() || absl::IsInternal(head.status()), "what is no response is the server's fault", head.status());
  if (head.ok() && is_response) CheckHead(*head, expected);
  const std::vector<ResultPlan> nothing(4, ResultPlan::Discard());
  for (const bool returns : {true, false}) {
    const auto answer =
        client::DecodeExecuteResponse(buffer, client::MemoryOrder::kRowMajor,
                                      returns ? absl::Span<const ResultPlan>() : absl::MakeConstSpan(nothing));
    Require(answer.ok() || absl::IsInternal(answer.status()), "what is no response is the server's fault",
            answer.status());
    if (answer.ok() && is_response) CheckAnswer(*answer, expected);
  }
}

}  // namespace tensord
