#include "server/rpc/execute/execute_response.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "server/rpc/wire/shared_slice.h"
#include "server/rpc/wire/wire_bytes.h"

namespace tensord::server {
namespace {

// Field numbers of tensord/v1/{compute,tensor}.proto; a test compares the bytes with protobuf's own.
constexpr int kResponseRequestId = 1, kResponseResults = 2, kResponseStats = 3;
constexpr int kResultTensor = 1, kResultHandle = 2, kResultShared = 3;
constexpr int kTensorDtype = 1, kTensorShape = 2, kTensorOrder = 3, kTensorData = 15;

// Below this a copy costs less than a slice of its own.
constexpr int64_t kSharedFrom = 4096;

constexpr size_t kUsualBytes = 512;  // of what is written by hand

// dtype, shape and order of a tensor, as the client sees it.
std::string EncodeTensorHeader(const ConcreteType& type, Order order) {
  std::string sizes;
  const auto append = [&](int64_t size) { AppendVarint(static_cast<uint64_t>(size), &sizes); };
  if (order == Order::kRowMajor) {
    for (auto it = type.shape.rbegin(); it != type.shape.rend(); ++it) append(*it);
  } else {
    for (const int64_t size : type.shape) append(size);
  }
  std::string header;
  AppendVarintField(kTensorDtype, static_cast<uint64_t>(type.dtype), &header);
  if (!sizes.empty()) AppendBytesField(kTensorShape, sizes, &header);
  AppendVarintField(kTensorOrder, static_cast<uint64_t>(order), &header);
  return header;
}

// Encodes the field of a result that gives the place of its data.
std::string EncodeSpace(const v1::SharedSpace& wanted, int64_t size_bytes) {
  v1::SharedSpace space = wanted;
  space.set_byte_count(size_bytes);
  std::string field;
  AppendBytesField(kResultShared, space.SerializeAsString(), &field);
  return field;
}

// Slices in the making: bytes written by hand gather in `written` until a payload is put in as it is.
class SliceList {
 public:
  SliceList() { written_.reserve(kUsualBytes); }

  std::string& written() { return written_; }
  void AddShared(const RunTensor& tensor, int64_t size) {
    Flush();
    slices_.push_back(
        SharedSlice({static_cast<const char*>(tensor.bytes.get()), static_cast<size_t>(size)}, tensor.bytes));
  }
  void Take(grpc::ByteBuffer* to) {
    Flush();
    grpc::ByteBuffer(slices_.data(), slices_.size()).Swap(to);
  }

 private:
  void Flush() {
    if (written_.empty()) return;
    slices_.emplace_back(written_);
    written_.clear();
  }

  std::string written_;
  std::vector<grpc::Slice> slices_;
};

}  // namespace

bool IsKept(const v1::ResultOption& option) {
  return option.delivery() == v1::ResultOption::DELIVERY_KEEP || option.delivery() == v1::ResultOption::DELIVERY_BOTH;
}

bool IsSent(const v1::ResultOption& option) {
  return option.delivery() == v1::ResultOption::DELIVERY_INLINE || option.delivery() == v1::ResultOption::DELIVERY_BOTH;
}

absl::Status EncodeExecuteResponse(uint64_t request_id, Order order, absl::Span<const RunTensor> results,
                                   const google::protobuf::RepeatedPtrField<v1::ResultOption>& options,
                                   const v1::ExecutionStats& stats, const std::vector<bool>& placed,
                                   grpc::ByteBuffer* response) {
  SliceList slices;
  if (request_id != 0) AppendVarintField(kResponseRequestId, request_id, &slices.written());
  int64_t total = static_cast<int64_t>(slices.written().size());
  for (size_t i = 0; i < results.size(); ++i) {
    const v1::ResultOption* option = static_cast<int>(i) < options.size() ? &options.Get(static_cast<int>(i)) : nullptr;
    const bool is_placed = i < placed.size() && placed[i];
    const bool has_data = !is_placed && (option == nullptr || IsSent(*option));
    const int64_t data_bytes = has_data ? results[i].type.num_bytes() : 0;
    const std::string space = is_placed ? EncodeSpace(option->shared(), results[i].type.num_bytes()) : "";
    const bool named = option != nullptr && IsKept(*option);
    const int64_t handle_bytes = named ? LengthFieldSize(static_cast<int64_t>(option->handle().size())) : 0;
    const std::string header = EncodeTensorHeader(results[i].type, order);
    const int64_t tensor_bytes =
        static_cast<int64_t>(header.size()) + (data_bytes > 0 ? LengthFieldSize(data_bytes) : 0);
    const int64_t result_bytes = LengthFieldSize(tensor_bytes) + handle_bytes + static_cast<int64_t>(space.size());
    // Results are at most some exabytes together, as the device held them; no sum overflows.
    total += LengthFieldSize(result_bytes);
    if (total > kMaxResponseBytes) {
      return RefuseLimit("response_bytes", kMaxResponseBytes, total, "bytes of the response");
    }
    AppendLengthTag(kResponseResults, result_bytes, &slices.written());
    AppendLengthTag(kResultTensor, tensor_bytes, &slices.written());
    slices.written().append(header);
    if (data_bytes > 0) AppendLengthTag(kTensorData, data_bytes, &slices.written());
    if (data_bytes >= kSharedFrom) {
      slices.AddShared(results[i], data_bytes);
    } else if (data_bytes > 0) {
      slices.written().append(static_cast<const char*>(results[i].bytes.get()), static_cast<size_t>(data_bytes));
    }
    if (named) AppendBytesField(kResultHandle, option->handle(), &slices.written());
    slices.written().append(space);
  }
  const int64_t stats_bytes = static_cast<int64_t>(stats.ByteSizeLong());
  total += LengthFieldSize(stats_bytes);
  if (total > kMaxResponseBytes) {
    return RefuseLimit("response_bytes", kMaxResponseBytes, total, "bytes of the response");
  }
  AppendLengthTag(kResponseStats, stats_bytes, &slices.written());
  stats.AppendToString(&slices.written());
  slices.Take(response);
  return absl::OkStatus();
}

}  // namespace tensord::server
