#include "clients/cpp/wire/execute_wire.h"

#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/wire/wire_cursor.h"
#include "clients/cpp/wire/wire_writer.h"
#include "tensord/error_detail.h"

namespace tensord::client {
namespace {

// gRPC frames carry a 32-bit length.
constexpr uint64_t kMaxMessageBytes = std::numeric_limits<uint32_t>::max();
// Protobuf itself counts in int.
constexpr uint64_t kMaxHeaderBytes = std::numeric_limits<int>::max();
// Below this a copy costs less than a slice with an owner.
constexpr size_t kCopiedPayloadBytes = 4096;

// One Argument of an ExecuteRequest.
std::string WithTag(const v1::Argument& argument) {
  const std::string bytes = argument.SerializeAsString();
  std::string result;
  AppendLengthDelimitedTag(v1::ExecuteRequest::kArgumentsFieldNumber, &result);
  AppendVarint(bytes.size(), &result);
  return result + bytes;
}

// One that names a tensor of the session.
std::string HandleArgument(const Argument& argument) {
  v1::Argument wire;
  argument.is_donated() ? wire.set_donated_handle(argument.handle()) : wire.set_handle(argument.handle());
  return WithTag(wire);
}

// Everything of one Argument but its payload.
std::string ArgumentHeader(const HostTensor& tensor) {
  v1::Tensor head;
  head.set_dtype(ToWire(tensor.dtype()));
  for (int64_t dim : tensor.shape()) head.add_shape(dim);
  head.set_order(ToWire(tensor.order()));

  std::string tensor_head = head.SerializeAsString();
  if (tensor.size_bytes() > 0) {
    AppendLengthDelimitedTag(v1::Tensor::kDataFieldNumber, &tensor_head);
    AppendVarint(tensor.size_bytes(), &tensor_head);
  }
  const uint64_t tensor_bytes = tensor_head.size() + tensor.size_bytes();
  std::string result;
  AppendLengthDelimitedTag(v1::ExecuteRequest::kArgumentsFieldNumber, &result);
  AppendVarint(1 + VarintSize(tensor_bytes) + tensor_bytes, &result);
  AppendLengthDelimitedTag(v1::Argument::kTensorFieldNumber, &result);
  AppendVarint(tensor_bytes, &result);
  result += tensor_head;
  return result;
}

// One Argument that names a place in shared memory.
std::string SharedArgument(const HostTensor& tensor, const SharedPlace& place) {
  v1::Argument argument;
  v1::SharedTensor* shared = argument.mutable_shared();
  shared->set_dtype(ToWire(tensor.dtype()));
  for (int64_t dim : tensor.shape()) shared->add_shape(dim);
  shared->set_order(ToWire(tensor.order()));
  shared->set_region(place.region);
  shared->set_offset(place.offset);
  return WithTag(argument);
}

// How many bytes of `request` protobuf writes after the arguments.
size_t SizeAfterArguments(const v1::ExecuteRequest& request) {
  v1::ExecuteRequest tail;
  *tail.mutable_results() = request.results();
  tail.set_session(request.session());
  tail.set_priority(request.priority());
  tail.set_profile(request.profile());
  return tail.ByteSizeLong();
}

absl::Status Malformed() { return absl::InternalError("the server's answer is no ExecuteResponse"); }

// A tensor while its fields arrive in any order.
struct WireTensor {
  bool is_present = false;
  uint64_t dtype = 0;
  uint64_t order = 0;
  Shape shape;
  std::shared_ptr<char> data;
  uint64_t size_bytes = 0;
};

bool ReadShape(WireCursor& cursor, WireCursor::Tag tag, uint64_t end, Shape* shape) {
  uint64_t dim;
  if (tag.wire_type == WireCursor::kVarint) {
    if (!cursor.ReadVarint(&dim)) return false;
    shape->push_back(static_cast<int64_t>(dim));
    return true;
  }
  uint64_t packed_end;
  if (tag.wire_type != WireCursor::kLengthDelimited || !cursor.ReadLength(end, &packed_end)) return false;
  while (cursor.position() < packed_end) {
    if (!cursor.ReadVarint(&dim)) return false;
    shape->push_back(static_cast<int64_t>(dim));
  }
  return cursor.position() == packed_end;
}

bool ReadData(WireCursor& cursor, uint64_t end, WireTensor* tensor) {
  uint64_t data_end;
  if (!cursor.ReadLength(end, &data_end)) return false;
  tensor->size_bytes = data_end - cursor.position();
  tensor->data.reset(new char[tensor->size_bytes], std::default_delete<char[]>());
  return cursor.ReadBytes(tensor->data.get(), tensor->size_bytes);
}

bool ReadTensor(WireCursor& cursor, uint64_t end, WireTensor* tensor) {
  tensor->is_present = true;
  while (cursor.position() < end) {
    WireCursor::Tag tag;
    if (!cursor.ReadTag(&tag)) return false;
    bool is_read;
    if (tag.number == v1::Tensor::kDtypeFieldNumber && tag.wire_type == WireCursor::kVarint) {
      is_read = cursor.ReadVarint(&tensor->dtype);
    } else if (tag.number == v1::Tensor::kOrderFieldNumber && tag.wire_type == WireCursor::kVarint) {
      is_read = cursor.ReadVarint(&tensor->order);
    } else if (tag.number == v1::Tensor::kShapeFieldNumber) {
      is_read = ReadShape(cursor, tag, end, &tensor->shape);
    } else if (tag.number == v1::Tensor::kDataFieldNumber && tag.wire_type == WireCursor::kLengthDelimited) {
      is_read = ReadData(cursor, end, tensor);
    } else {
      is_read = cursor.SkipField(tag, end);
    }
    if (!is_read) return false;
  }
  return cursor.position() == end;
}

// `space`: where the server may have put the data.
bool ReadResult(WireCursor& cursor, uint64_t end, const ResultSpace& space, WireTensor* tensor) {
  while (cursor.position() < end) {
    WireCursor::Tag tag;
    if (!cursor.ReadTag(&tag)) return false;
    if (tag.number == v1::Result::kSharedFieldNumber && tag.wire_type == WireCursor::kLengthDelimited) {
      uint64_t shared_end;
      std::string bytes;
      v1::SharedSpace shared;
      if (space.bytes == nullptr || !cursor.ReadLength(end, &shared_end) ||
          !cursor.ReadString(shared_end - cursor.position(), &bytes) || !shared.ParseFromString(bytes) ||
          shared.byte_count() < 0 || static_cast<uint64_t>(shared.byte_count()) > space.size_bytes) {
        return false;
      }
      tensor->data = space.bytes;
      tensor->size_bytes = static_cast<uint64_t>(shared.byte_count());
      continue;
    }
    if (tag.number == v1::Result::kTensorFieldNumber && tag.wire_type == WireCursor::kLengthDelimited) {
      uint64_t tensor_end;
      if (!cursor.ReadLength(end, &tensor_end) || !ReadTensor(cursor, tensor_end, tensor)) return false;
    } else if (!cursor.SkipField(tag, end)) {
      return false;
    }
  }
  return cursor.position() == end;
}

absl::StatusOr<ExecuteOutput> ToOutput(WireTensor wire, MemoryOrder default_order, bool is_returned) {
  if (!wire.is_present) return absl::InternalError("the server sent a result without a tensor");
  if (wire.dtype > INT32_MAX || !IsKnownDType(static_cast<int>(wire.dtype))) {
    return absl::InternalError(absl::StrCat("the server sent a dtype that this client does not know: ", wire.dtype));
  }
  MemoryOrder order = default_order;
  if (wire.order == v1::MEMORY_ORDER_COLUMN_MAJOR) {
    order = MemoryOrder::kColumnMajor;
  } else if (wire.order == v1::MEMORY_ORDER_ROW_MAJOR) {
    order = MemoryOrder::kRowMajor;
  } else if (wire.order != v1::MEMORY_ORDER_UNSPECIFIED) {
    return absl::InternalError(absl::StrCat("the server sent an order that this client does not know: ", wire.order));
  }
  ExecuteOutput output = {.dtype = static_cast<DType>(wire.dtype), .shape = std::move(wire.shape), .order = order};
  if (!is_returned) {
    for (const int64_t dim : output.shape) {
      if (dim < 0) return absl::InternalError(absl::StrCat("the server sent a result with a size of ", dim));
    }
    return output;
  }
  absl::StatusOr<HostTensor> tensor =
      HostTensor::FromBuffer(output.dtype, output.shape, order, std::move(wire.data), wire.size_bytes);
  if (!tensor.ok())
    return absl::InternalError(absl::StrCat("the server sent a bad result: ", tensor.status().message()));
  output.tensor = *std::move(tensor);
  return output;
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> EncodeExecuteRequest(const v1::ExecuteRequest& request,
                                                      absl::Span<const Argument> arguments,
                                                      absl::Span<const std::optional<SharedPlace>> places) {
  const size_t fields_bytes = request.ByteSizeLong();
  if (fields_bytes > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph and its constants are too large for a message: ", fields_bytes, " bytes"));
  }
  const std::string fields = request.SerializeAsString();
  const size_t size_before_arguments = fields.size() - SizeAfterArguments(request);

  uint64_t message_bytes = fields.size();
  std::vector<grpc::Slice> slices;
  slices.reserve(2 * arguments.size() + 1);
  std::string header = fields.substr(0, size_before_arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].tensor() == nullptr) {
      const std::string argument = HandleArgument(arguments[i]);
      message_bytes += argument.size();
      header += argument;
      continue;
    }
    const HostTensor& tensor = *arguments[i].tensor();
    if (!places.empty() && places[i].has_value()) {
      const std::string argument = SharedArgument(tensor, *places[i]);
      message_bytes += argument.size();
      header += argument;
      continue;
    }
    const std::string argument_header = ArgumentHeader(tensor);
    message_bytes += argument_header.size() + tensor.size_bytes();
    header += argument_header;
    if (tensor.size_bytes() <= kCopiedPayloadBytes) {
      header.append(tensor.bytes(), tensor.size_bytes());
      continue;
    }
    slices.emplace_back(header);
    slices.push_back(PayloadSlice(tensor, 0, tensor.size_bytes()));
    header.clear();
  }
  header.append(fields, size_before_arguments, std::string::npos);
  if (!header.empty()) slices.emplace_back(header);
  if (message_bytes > kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the arguments are too large for one message: ", message_bytes,
                                                   " bytes, limit ", kMaxMessageBytes));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::StatusOr<ExecuteAnswer> DecodeExecuteResponse(const grpc::ByteBuffer& response, MemoryOrder default_order,
                                                    absl::Span<const ResultPlan> plans,
                                                    absl::Span<const ResultSpace> spaces) {
  std::optional<WireCursor> cursor = WireCursor::Open(response);
  if (!cursor.has_value()) return Malformed();
  ExecuteAnswer answer;
  v1::ExecutionStats stats;
  while (cursor->position() < cursor->size()) {
    WireCursor::Tag tag;
    if (!cursor->ReadTag(&tag)) return Malformed();
    const bool is_result = tag.number == v1::ExecuteResponse::kResultsFieldNumber;
    const bool is_stats = tag.number == v1::ExecuteResponse::kStatsFieldNumber;
    if (!(is_result || is_stats) || tag.wire_type != WireCursor::kLengthDelimited) {
      if (!cursor->SkipField(tag, cursor->size())) return Malformed();
      continue;
    }
    uint64_t end;
    if (!cursor->ReadLength(cursor->size(), &end)) return Malformed();
    if (is_stats) {
      std::string bytes;
      if (!cursor->ReadString(end - cursor->position(), &bytes) || !stats.MergeFromString(bytes)) {
        return Malformed();
      }
      continue;
    }
    WireTensor wire;
    const size_t index = answer.outputs.size();
    if (!ReadResult(*cursor, end, index < spaces.size() ? spaces[index] : ResultSpace(), &wire)) return Malformed();
    const bool is_returned = index >= plans.size() || plans[index].is_returned();
    absl::StatusOr<ExecuteOutput> output = ToOutput(std::move(wire), default_order, is_returned);
    if (!output.ok()) return output.status();
    answer.outputs.push_back(*std::move(output));
  }
  if (answer.outputs.size() < plans.size()) {
    return absl::InternalError(
        absl::StrCat("the server sent another number of results: ", answer.outputs.size(), " for ", plans.size()));
  }
  answer.stats = ExecutionStats(stats);
  return answer;
}

absl::StatusOr<ResponseHead> ReadResponseHead(const grpc::ByteBuffer& response) {
  std::optional<WireCursor> cursor = WireCursor::Open(response);
  if (!cursor.has_value()) return Malformed();
  ResponseHead head;
  v1::Error error;
  while (cursor->position() < cursor->size()) {
    WireCursor::Tag tag;
    if (!cursor->ReadTag(&tag)) return Malformed();
    if (tag.number == v1::ExecuteResponse::kRequestIdFieldNumber && tag.wire_type == WireCursor::kVarint) {
      if (!cursor->ReadVarint(&head.request_id)) return Malformed();
    } else if (tag.number == v1::ExecuteResponse::kErrorFieldNumber && tag.wire_type == WireCursor::kLengthDelimited) {
      uint64_t end;
      std::string bytes;
      if (!cursor->ReadLength(cursor->size(), &end) || !cursor->ReadString(end - cursor->position(), &bytes) ||
          !error.MergeFromString(bytes)) {
        return Malformed();
      }
      head.error = ToAbslStatus(error);
    } else if (!cursor->SkipField(tag, cursor->size())) {
      return Malformed();
    }
  }
  return head;
}

}  // namespace tensord::client
