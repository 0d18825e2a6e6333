#include "server/rpc/execute/execute_arguments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/exec/program/changing_memory.h"
#include "proto/codec/known_fields.h"
#include "proto/codec/reverse_order.h"
#include "proto/codec/tensor_codec.h"
#include "server/observe/metrics/timed_transfer.h"
#include "server/rpc/tensors/reordered_tensor.h"
#include "server/rpc/wire/spread_copy.h"
#include "server/shared_memory/find_shared.h"

namespace tensord::server {
namespace {

// A tensor as a program of that order takes it, but for its elements.
RunTensor AsTaken(const ConcreteType& type, Order program_order) {
  RunTensor taken{.type = type};
  if (program_order == Order::kRowMajor) std::reverse(taken.type.shape.begin(), taken.type.shape.end());
  return taken;
}

Order OrderOf(const CompiledProgram& program) {
  return program.program().row_major ? Order::kRowMajor : Order::kColumnMajor;
}

// `charges`: of the copies.
absl::StatusOr<RunTensor> ResidentArgument(const HandleClaim& claim, size_t use, bool writable,
                                           const CompiledProgram& program, const ServiceParts& parts,
                                           std::vector<MemoryCharge>* charges) {
  ASSIGN_OR_RETURN(ResidentTensor tensor, claim.Read(use));
  const std::string& device = program.device();
  if (tensor.type.device != device) {
    return Refuse(Refusal::kArgumentMismatch,
                  absl::StrCat("the program runs on ", device, " and the resident tensor is on ", tensor.type.device,
                               "; send it there first"));
  }
  const Order order = OrderOf(program);
  RunTensor argument = AsTaken(tensor.type.type, order);
  if (tensor.type.order == order || argument.type.rank() <= 1) {
    argument.donated = writable;
    argument.buffer = std::move(tensor.buffer);
    return argument;
  }
  if (program.takes_destinations()) {
    ASSIGN_OR_RETURN(ReorderedTensor other,
                     InOtherOrder(tensor, program.backend(), *claim.session(), parts.tensors.payloads));
    charges->push_back(std::move(other.charge));
    argument.donated = true;
    argument.bytes = std::move(other.bytes);
    return argument;
  }
  const Session& session = *claim.session();
  ASSIGN_OR_RETURN(MemoryCharge charge, session.ledger()->Charge(session.tenant(), device, tensor.type.num_bytes()));
  charges->push_back(std::move(charge));
  argument.reversed = true;
  argument.buffer = std::move(tensor.buffer);
  return argument;
}

absl::StatusOr<RunTensor> DecodeArgument(const std::shared_ptr<const ReceivedExecute>& request, int index, Order order,
                                         const codec::GraphLimits& limits, HostBufferPool* pool) {
  const v1::Argument& argument = request->message.arguments(index);
  if (argument.value_case() == v1::Argument::VALUE_NOT_SET) {
    return Refuse(Refusal::kMalformedMessage, "the argument has no value");
  }
  const v1::Tensor& tensor = argument.tensor();
  const absl::string_view data = request->DataOf(index);
  ASSIGN_OR_RETURN(const codec::TensorHeader header, codec::DecodeTensorHeader(tensor, order, limits));
  RETURN_IF_ERROR(codec::CheckTensorData(header, data));
  RunTensor host = AsTaken(header.type, order);
  // The request is this call's alone, and nobody reads a tensor of it again.
  host.donated = true;
  host.bytes = std::shared_ptr<const void>(request, data.data());
  if (header.order != order && header.type.rank() > 1) {
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> copy, pool->Allocate(header.type.num_bytes()));
    codec::ReverseOrder(header.type, header.order, data.data(), static_cast<char*>(copy->address()));
    host.bytes = std::shared_ptr<const void>(copy, copy->address());
  }
  return host;
}

// `may_change`: the program reads it safely while the client writes there.
absl::StatusOr<RunTensor> SharedArgument(const v1::SharedTensor& tensor, bool may_change, Order order,
                                         const ServiceParts& parts, const std::string& tenant,
                                         std::vector<AddedBytes>* added) {
  RETURN_IF_ERROR(codec::CheckKnownFields(tensor));
  ASSIGN_OR_RETURN(const codec::TensorHeader header,
                   codec::DecodeTensorHeader(tensor.dtype(), tensor.shape(), tensor.order(), order,
                                             parts.admission.graph_limits.now()));
  ASSIGN_OR_RETURN(const SharedPart part,
                   FindShared(parts.tensors.regions, tenant, tensor.region(), tensor.offset(), header.num_bytes));
  RunTensor host = AsTaken(header.type, order);
  const bool is_reordered = header.order != order && header.type.rank() > 1;
  if (may_change && !is_reordered) {
    host.bytes = std::shared_ptr<const void>(part.region, part.bytes);
    return host;
  }
  ASSIGN_OR_RETURN(AddedBytes bytes, AddedBytes::Add(&parts.admission.gate->bytes(), header.num_bytes, tenant));
  added->push_back(std::move(bytes));
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> copy, parts.tensors.payloads->Allocate(header.num_bytes));
  char* const to = static_cast<char*>(copy->address());
  {
    const TimedTransfer timed(parts.observers.metrics, Transfer::kShared, header.num_bytes);
    if (is_reordered) {
      codec::ReverseOrder(header.type, header.order, part.bytes, to);
    } else {
      SpreadCopy({part.bytes, static_cast<size_t>(header.num_bytes)}, to, parts.tensors.parallel_for);
    }
  }
  // Only now: the run must compute with the very bytes that are checked.
  RETURN_IF_ERROR(codec::CheckTensorData(header, {to, static_cast<size_t>(header.num_bytes)}));
  host.donated = true;
  host.bytes = std::shared_ptr<const void>(copy, to);
  return host;
}

// The same refusal, with the argument's place at the end of the message.
absl::Status AtArgument(const absl::Status& status, int index, const std::string& input) {
  absl::Status named(status.code(), absl::StrCat(status.message(), " (argument ", index, ", input \"", input, "\")"));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { named.SetPayload(type, payload); });
  return named;
}

}  // namespace

absl::StatusOr<std::vector<RunTensor>> DecodeArguments(const std::shared_ptr<const ReceivedExecute>& request,
                                                       const CompiledProgram& compiled, const HandleClaim& claim,
                                                       absl::Span<const bool> writable, const ServiceParts& parts,
                                                       const std::string& tenant, ArgumentCopies* copies) {
  const ExecProgram& program = compiled.program();
  const int count = request->message.arguments_size();
  if (static_cast<size_t>(count) != program.inputs.size()) {
    return Refuse(Refusal::kArgumentCount,
                  absl::StrCat("the program takes ", program.inputs.size(), " arguments, not ", count));
  }
  const Order order = OrderOf(compiled);
  std::vector<RunTensor> arguments;
  arguments.reserve(static_cast<size_t>(count));
  size_t use = 0;                // of the claim
  std::vector<bool> may_change;  // by input; empty: not asked yet
  const auto decode = [&](int i) -> absl::StatusOr<RunTensor> {
    switch (request->message.arguments(i).value_case()) {
      case v1::Argument::kHandle:
      case v1::Argument::kDonatedHandle: {
        const size_t own = use++;
        return ResidentArgument(claim, own, writable[own], compiled, parts, &copies->charges);
      }
      case v1::Argument::kShared:
        if (may_change.empty()) may_change = InputsThatMayChange(program);
        return SharedArgument(request->message.arguments(i).shared(), may_change[static_cast<size_t>(i)], order, parts,
                              tenant, &copies->added);
      default:
        return DecodeArgument(request, i, order, parts.admission.graph_limits.now(), parts.tensors.payloads);
    }
  };
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<RunTensor> argument = decode(i);
    if (!argument.ok()) return AtArgument(argument.status(), i, program.inputs[static_cast<size_t>(i)].name);
    arguments.push_back(*std::move(argument));
  }
  return arguments;
}

int64_t CopiedBytes(const ReceivedExecute& received, const CompiledProgram& compiled, const HandleClaim& claim,
                    const ServiceParts& parts) {
  const ExecProgram& program = compiled.program();
  const v1::ExecuteRequest& request = received.message;
  const Order order = OrderOf(compiled);
  int64_t bytes = received.scattered_bytes();
  size_t use = 0;                // of the claim
  std::vector<bool> may_change;  // by input; empty: not asked yet
  for (int i = 0; i < request.arguments_size(); ++i) {
    const v1::Argument& argument = request.arguments(i);
    if (argument.value_case() == v1::Argument::kHandle || argument.value_case() == v1::Argument::kDonatedHandle) {
      const ResidentType type = claim.TypeOf(use++);
      const bool is_reordered = type.order != order && type.type.rank() > 1;
      if (is_reordered && compiled.takes_destinations()) bytes += type.num_bytes();
    } else if (argument.has_shared()) {
      const v1::SharedTensor& tensor = argument.shared();
      const auto header = codec::DecodeTensorHeader(tensor.dtype(), tensor.shape(), tensor.order(), order,
                                                    parts.admission.graph_limits.now());
      if (!header.ok()) continue;
      if (may_change.empty()) may_change = InputsThatMayChange(program);
      const bool is_reordered = header->order != order && header->type.rank() > 1;
      const bool stays = static_cast<size_t>(i) < may_change.size() && may_change[static_cast<size_t>(i)];
      if (is_reordered || !stays) bytes += header->num_bytes;
    } else if (argument.has_tensor() && argument.tensor().shape_size() > 1) {
      const auto header = codec::DecodeTensorHeader(argument.tensor(), order, parts.admission.graph_limits.now());
      if (header.ok() && header->order != order) bytes += header->num_bytes;
    }
  }
  return bytes;
}

}  // namespace tensord::server
