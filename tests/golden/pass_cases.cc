#include "tests/golden/pass_cases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/families/all_families.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/layout/reverse_wire_order.h"
#include "engine/passes/pipeline.h"

namespace tensord {
namespace {

// A pass names a node after the one that it stands for, so several may have one name.
Graph WithDistinctNames(const Graph& graph) {
  Graph distinct;
  distinct.set_name(graph.name());
  distinct.set_algebra(graph.algebra());
  absl::flat_hash_map<std::string, int> uses;
  for (const GraphInput& input : graph.inputs()) {
    ++uses[input.name];
    distinct.AddInput(input.name, input.type);
  }
  for (Node node : graph.nodes()) {
    const int use = ++uses[node.name];
    if (use > 1) absl::StrAppend(&node.name, "_", use);
    const ValueId value = distinct.AddNode(std::move(node));
    distinct.set_type(value, graph.type(value));
  }
  for (const GraphOutput& output : graph.outputs()) distinct.AddOutput(output.name, output.value);
  return distinct;
}

// The names of the passes that changed something.
absl::StatusOr<std::vector<std::string>> RunPasses(const std::vector<std::string>& names, bool row_major,
                                                   Graph* graph) {
  std::vector<std::string> changed;
  for (const std::string& name : names) {
    const absl::Span<const Pass> passes = GraphPasses();
    const auto pass = std::find_if(passes.begin(), passes.end(), [&](const Pass& p) { return p.name == name; });
    if (pass == passes.end()) return absl::InvalidArgumentError(absl::StrCat("there is no pass ", name));
    ASSIGN_OR_RETURN(const bool did, pass->run(graph, {.row_major = row_major, .fuses = true}));
    if (did) changed.push_back(name);
    RETURN_IF_ERROR(VerifyTypes(*graph));
  }
  return changed;
}

}  // namespace

absl::StatusOr<std::string> RunPassCase(const std::string& input) {
  const std::string directive = input.substr(0, input.find('\n'));
  const std::vector<std::string> words = absl::StrSplit(directive, absl::ByAnyChar(" :"), absl::SkipEmpty());
  if (words.size() < 3 || words[0] != "//" || (words[1] != "column_major" && words[1] != "row_major")) {
    return absl::InvalidArgumentError(absl::StrCat("no order and passes: ", directive));
  }
  const bool row_major = words[1] == "row_major";
  const std::vector<std::string> names(words.begin() + 2, words.end());

  ASSIGN_OR_RETURN(Graph graph, ParseGraph(input, FamilyRegistry()));
  RETURN_IF_ERROR(InferTypes(&graph).status());
  if (row_major) graph = ReverseWireOrder(graph);
  ASSIGN_OR_RETURN(const std::vector<std::string> changed, RunPasses(names, row_major, &graph));
  const std::string text = PrintGraph(WithDistinctNames(graph));
  // The rest is in the order in which it is stored: for another run it is as good as column-major.
  ASSIGN_OR_RETURN(const std::vector<std::string> again, RunPasses(names, /*row_major=*/false, &graph));
  if (!again.empty()) return absl::InternalError(absl::StrCat(again[0], " changes its own result\n", text));
  return absl::StrCat("changed: ", changed.empty() ? "nothing" : absl::StrJoin(changed, " "), "\n", text);
}

}  // namespace tensord
