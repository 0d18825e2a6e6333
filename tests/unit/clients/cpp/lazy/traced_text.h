#ifndef TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_TRACED_TEXT_H_
#define TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_TRACED_TEXT_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensord/evaluation.h"
#include "tensord/messages.h"
#include "tests/unit/clients/cpp/lazy/client_tensors.h"

namespace tensord::client {

// The graph that tensors trace to, a line for each input, node and output; or why there is none. Nodes are called n0,
// n1, … here: their names tell the line of the test.
inline std::string TracedText(const std::vector<Tensor>& outputs) {
  const absl::StatusOr<TracedGraph> traced = Trace(outputs);
  if (!traced.ok()) return Why(traced.status());
  absl::flat_hash_map<std::string, std::string> names;
  const auto name_of = [&names](const std::string& value) {
    const size_t colon = value.find(':');
    const auto found = names.find(value.substr(0, colon));
    if (found == names.end()) return value;
    return colon == std::string::npos ? found->second : found->second + value.substr(colon);
  };
  std::string text;
  for (const v1::GraphInput& input : traced->graph.inputs()) {
    std::vector<int64_t> dims;
    for (const v1::DimExpr& dim : input.type().shape()) {
      dims.push_back(dim.expr_case() == v1::DimExpr::kSymbol ? Symbol(dim.symbol()) : dim.size());
    }
    absl::StrAppend(&text, input.name(), " = input ", DTypeName(static_cast<DType>(input.type().dtype())),
                    ShapeToString(dims), "\n");
  }
  for (v1::Node node : traced->graph.nodes()) {
    std::vector<std::string> inputs;
    for (const std::string& input : node.inputs()) inputs.push_back(name_of(input));
    const std::string& name = names.emplace(node.name(), absl::StrCat("n", names.size())).first->second;
    const std::string head = absl::StrCat(name, " = (", absl::StrJoin(inputs, ", "), ") ");
    node.clear_name();
    node.clear_inputs();
    absl::StrAppend(&text, head, node.ShortDebugString(), "\n");
  }
  for (const v1::GraphOutput& output : traced->graph.outputs()) {
    absl::StrAppend(&text, output.name(), " = ", name_of(output.value()), "\n");
  }
  return text;
}

}  // namespace tensord::client

#endif  // TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_TRACED_TEXT_H_
