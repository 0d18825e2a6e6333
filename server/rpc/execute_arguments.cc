#include "server/rpc/execute_arguments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "proto/codec/reverse_order.h"
#include "proto/codec/tensor_codec.h"

namespace tensord::server {
namespace {

// The tensor's elements in the other order, in memory of their own.
std::shared_ptr<const void> Reordered(const codec::TensorHeader& header, absl::string_view data) {
  const std::shared_ptr<char[]> copy(new char[data.size()]);
  Shape shape = header.type.shape;
  // A row-major tensor is a column-major one of reversed shape.
  if (header.order == Order::kRowMajor) std::reverse(shape.begin(), shape.end());
  codec::ReverseOrder(shape, SizeOf(header.type.dtype), data.data(), copy.get());
  return std::shared_ptr<const void>(copy, copy.get());
}

// `order` is the program's.
absl::StatusOr<HostTensor> ResidentArgument(const ResidentTensor& tensor, bool writable, Order order,
                                            const std::string& device) {
  if (tensor.type.device != device) {
    return Refuse(Refusal::kArgumentMismatch,
                  absl::StrCat("the program runs on ", device, " and the resident tensor is on ", tensor.type.device,
                               "; send it there first"));
  }
  HostTensor host{.type = tensor.type.type, .bytes = tensor.bytes, .donated = writable};
  if (tensor.type.order != order && host.type.rank() > 1) {
    const codec::TensorHeader header = {.type = host.type, .order = tensor.type.order};
    host.bytes =
        Reordered(header, {static_cast<const char*>(tensor.bytes.get()), static_cast<size_t>(tensor.type.num_bytes())});
    host.donated = true;
  }
  if (order == Order::kRowMajor) std::reverse(host.type.shape.begin(), host.type.shape.end());
  return host;
}

absl::StatusOr<HostTensor> DecodeArgument(const std::shared_ptr<const ReceivedExecute>& request, int index, Order order,
                                          const codec::GraphLimits& limits) {
  const v1::Argument& argument = request->message.arguments(index);
  if (argument.value_case() == v1::Argument::VALUE_NOT_SET) {
    return Refuse(Refusal::kMalformedMessage, "the argument has no value");
  }
  const v1::Tensor& tensor = argument.tensor();
  const absl::string_view data = request->DataOf(index);
  ASSIGN_OR_RETURN(codec::TensorHeader header, codec::DecodeTensorHeader(tensor, order, limits));
  RETURN_IF_ERROR(codec::CheckTensorData(header, data));
  HostTensor host;
  host.bytes = header.order == order || header.type.rank() < 2 ? std::shared_ptr<const void>(request, data.data())
                                                               : Reordered(header, data);
  // The request is this call's alone, and nobody reads a tensor of it again.
  host.donated = true;
  host.type = std::move(header.type);
  if (order == Order::kRowMajor) std::reverse(host.type.shape.begin(), host.type.shape.end());
  return host;
}

// The same refusal, with the argument's place at the end of the message.
absl::Status AtArgument(const absl::Status& status, int index, const std::string& input) {
  absl::Status named(status.code(), absl::StrCat(status.message(), " (argument ", index, ", input \"", input, "\")"));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { named.SetPayload(type, payload); });
  return named;
}

}  // namespace

absl::StatusOr<std::vector<HostTensor>> DecodeArguments(const std::shared_ptr<const ReceivedExecute>& request,
                                                        const CompiledProgram& compiled, const HandleClaim& claim,
                                                        absl::Span<const bool> writable,
                                                        const codec::GraphLimits& limits) {
  const ExecProgram& program = compiled.program();
  const int count = request->message.arguments_size();
  if (static_cast<size_t>(count) != program.inputs.size()) {
    return Refuse(Refusal::kArgumentCount,
                  absl::StrCat("the program takes ", program.inputs.size(), " arguments, not ", count));
  }
  const Order order = program.row_major ? Order::kRowMajor : Order::kColumnMajor;
  std::vector<HostTensor> arguments;
  arguments.reserve(static_cast<size_t>(count));
  size_t use = 0;  // of the claim
  for (int i = 0; i < count; ++i) {
    const auto value = request->message.arguments(i).value_case();
    const bool is_resident = value == v1::Argument::kHandle || value == v1::Argument::kDonatedHandle;
    absl::StatusOr<HostTensor> argument =
        is_resident ? ResidentArgument(claim.Read(use), writable[use], order, compiled.device())
                    : DecodeArgument(request, i, order, limits);
    if (is_resident) ++use;
    if (!argument.ok()) return AtArgument(argument.status(), i, program.inputs[static_cast<size_t>(i)].name);
    arguments.push_back(*std::move(argument));
  }
  return arguments;
}

}  // namespace tensord::server
