#include "tests/e2e/property/wire_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/structural.h"
#include "proto/codec/graph_codec.h"
#include "proto/codec/tensor_codec.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord::property {
namespace {

v1::MemoryOrder OrderOf(bool row_major) {
  return row_major ? v1::MEMORY_ORDER_ROW_MAJOR : v1::MEMORY_ORDER_COLUMN_MAJOR;
}

v1::Tensor Encoded(const Literal& literal, bool row_major) {
  if (!row_major) return codec::EncodeLiteral(literal);
  // Row-major bytes of a shape are column-major bytes of the reversed one.
  const Literal reversed = TransposeLiteral(literal, ReversedOrder(literal.type().rank()));
  v1::Tensor tensor = codec::EncodeLiteral(reversed);
  tensor.mutable_shape()->Assign(literal.shape().begin(), literal.shape().end());
  tensor.set_order(v1::MEMORY_ORDER_ROW_MAJOR);
  return tensor;
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const v1::ErrorDetail detail = DetailOf(status);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(status.error_message(), " [", detail.reason(), "]"));
}

}  // namespace

std::string ToString(const WireOptions& options) {
  return absl::StrCat(options.row_major_program ? "row-major" : "column-major", " program, ",
                      options.row_major_arguments ? "row-major" : "column-major", " arguments, ",
                      options.by_fingerprint ? "by fingerprint" : "graph with every call", ", without passes [",
                      absl::StrJoin(options.disabled_passes, ", "), "]");
}

absl::StatusOr<std::vector<std::vector<Literal>>> RunThroughWire(v1::Compute::Stub& stub, const Graph& graph,
                                                                 const std::vector<std::vector<Literal>>& arguments,
                                                                 const WireOptions& options) {
  v1::ExecuteRequest request;
  ASSIGN_OR_RETURN(v1::Graph wire, codec::EncodeGraph(graph));
  v1::CompileOptions compile_options;
  compile_options.set_order(OrderOf(options.row_major_program));
  for (const std::string& pass : options.disabled_passes) compile_options.add_disabled_passes(pass);
  if (options.by_fingerprint) {
    v1::CompileRequest compile;
    *compile.mutable_graph() = std::move(wire);
    *compile.mutable_options() = compile_options;
    v1::CompileResponse compiled;
    RETURN_IF_ERROR(FromGrpc(tensord::Compile(stub, compile, &compiled)));
    request.set_fingerprint(compiled.program().fingerprint());
  } else {
    *request.mutable_graph() = std::move(wire);
    *request.mutable_options() = compile_options;
  }

  std::vector<std::vector<Literal>> all;
  for (const std::vector<Literal>& set : arguments) {
    request.clear_arguments();
    for (const Literal& argument : set) {
      *request.add_arguments()->mutable_tensor() = Encoded(argument, options.row_major_arguments);
    }
    v1::ExecuteResponse response;
    RETURN_IF_ERROR(FromGrpc(tensord::Execute(stub, request, &response)));
    if (response.stats().has_compile_time() && (options.by_fingerprint || !all.empty())) {
      return absl::InternalError("a program was compiled again for other sizes");
    }
    std::vector<Literal> results;
    for (const v1::Result& result : response.results()) {
      if (result.tensor().order() != OrderOf(options.row_major_program)) {
        return absl::InternalError("a result does not come in the program's order");
      }
      ASSIGN_OR_RETURN(Literal literal,
                       codec::DecodeLiteral(result.tensor(), Order::kColumnMajor, codec::GraphLimits()));
      results.push_back(std::move(literal));
    }
    all.push_back(std::move(results));
  }
  return all;
}

}  // namespace tensord::property
