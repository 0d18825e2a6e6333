#include "clients/cli/einsum_graph.h"

#include <map>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tensord::cli {

std::string WithOutput(absl::string_view equation) {
  std::string text = absl::StrReplaceAll(equation, {{" ", ""}});
  if (absl::StrContains(text, "->")) return text;
  std::map<char, int> count;
  for (const char c : text) {
    if (absl::ascii_isalpha(static_cast<unsigned char>(c))) ++count[c];
  }
  const bool has_ellipsis = absl::StrContains(text, "...");
  absl::StrAppend(&text, "->", has_ellipsis ? "..." : "");
  for (const auto& [label, times] : count) {
    if (times == 1) text += label;
  }
  return text;
}

absl::StatusOr<einsum::v1::Einsum::Optimizer> ParseOptimizer(absl::string_view name) {
  if (name == "auto") return einsum::v1::Einsum::OPTIMIZER_AUTO;
  if (name == "greedy") return einsum::v1::Einsum::OPTIMIZER_GREEDY;
  if (name == "optimal") return einsum::v1::Einsum::OPTIMIZER_OPTIMAL;
  if (name == "left-to-right") return einsum::v1::Einsum::OPTIMIZER_LEFT_TO_RIGHT;
  return absl::InvalidArgumentError(
      absl::StrCat("flag needs auto, greedy, optimal or left-to-right: --optimizer=", name));
}

v1::Graph EinsumGraph(const einsum::v1::Einsum& einsum, absl::Span<const client::HostTensor> operands) {
  v1::Graph graph;
  graph.set_name("einsum");
  v1::Node& node = *graph.add_nodes();
  node.set_name("einsum");
  node.mutable_extension()->mutable_op()->PackFrom(einsum);
  for (const client::HostTensor& operand : operands) {
    v1::GraphInput& input = *graph.add_inputs();
    input.set_name(absl::StrCat("operand", graph.inputs_size() - 1));
    input.mutable_type()->set_dtype(client::ToWire(operand.dtype()));
    for (const int64_t size : operand.shape()) input.mutable_type()->add_shape()->set_size(size);
    node.add_inputs(input.name());
  }
  v1::GraphOutput& output = *graph.add_outputs();
  output.set_name("result");
  output.set_value(node.name());
  return graph;
}

}  // namespace tensord::cli
