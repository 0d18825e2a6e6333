#ifndef TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_TRACED_TEXT_H_
#define TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_TRACED_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensord/evaluation.h"

namespace tensord::client {

// The graph that tensors trace to, a line for each input, node and output; or the status that says why there is none.
inline std::string TracedText(const std::vector<Tensor>& outputs) {
  const absl::StatusOr<TracedGraph> traced = Trace(outputs);
  if (!traced.ok()) return std::string(traced.status().message());
  std::string text;
  for (const v1::GraphInput& input : traced->graph.inputs()) {
    std::vector<int64_t> dims;
    for (const v1::DimExpr& dim : input.type().shape()) dims.push_back(dim.size());
    absl::StrAppend(&text, input.name(), " = input ", DTypeName(static_cast<DType>(input.type().dtype())),
                    ShapeToString(dims), "\n");
  }
  for (v1::Node node : traced->graph.nodes()) {
    const std::string head = absl::StrCat(node.name(), " = (", absl::StrJoin(node.inputs(), ", "), ") ");
    node.clear_name();
    node.clear_inputs();
    absl::StrAppend(&text, head, node.ShortDebugString(), "\n");
  }
  for (const v1::GraphOutput& output : traced->graph.outputs()) {
    absl::StrAppend(&text, output.name(), " = ", output.value(), "\n");
  }
  return text;
}

}  // namespace tensord::client

#endif  // TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_TRACED_TEXT_H_
