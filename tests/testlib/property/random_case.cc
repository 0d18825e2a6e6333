#include "tests/testlib/property/random_case.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/testlib/property/grow_patterns.h"
#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {
namespace {

// The dtype by which a node is counted.
DType CountedDType(const Graph& graph, const Node& node) {
  if (node.operands.empty()) return graph.type(node.first_result).dtype;
  // A predicate is always BOOL; what is selected is what the dtypes of the definition say.
  if (Is(*node.op, CoreOp::kSelect)) return graph.type(node.operands[1]).dtype;
  return graph.type(node.operands[0]).dtype;
}

}  // namespace

RandomCase MakeRandomCase(const GrowthOptions& options, uint64_t seed) {
  std::mt19937_64 random(seed);
  GrowthOptions chosen = options;
  const uint64_t extent = random() % 128;
  if (extent == 0) {  // many tiles of a fused kernel, and work for several threads
    chosen.max_size = 5000;
    chosen.max_elements *= 80;
    chosen.max_nodes = std::min(chosen.max_nodes, 16);
  } else if (extent <= 8) {  // axes that are longer than a vector, and than a block of the kernels
    chosen.max_size = 300;
    chosen.max_elements *= 4;
  }
  GrowingGraph growing(chosen, &random);
  // Small graphs are most of them: what goes wrong mostly does in a few nodes, and small is fast. Any size is met.
  const int64_t most = std::max(1, chosen.max_nodes - 4);  // a rule may add a few at once
  const size_t nodes =
      static_cast<size_t>(std::min(most, growing.OneIn(4) ? growing.Between(1, most) : growing.Between(1, 12)));
  const bool has_patterns = growing.OneIn(2);
  for (size_t tries = 0; growing.graph().nodes().size() < nodes && tries < 8 * nodes; ++tries) {
    if (has_patterns && growing.OneIn(4)) {
      GrowPattern(growing);
      continue;
    }
    // Every second node by an op with a rule of its own: the others are alike, and more than half of the vocabulary.
    CoreOp op = static_cast<CoreOp>(growing.Below(kNumCoreOps));
    while (growing.OneIn(2) && Def(op).op_class != OpClass::kPlain)
      op = static_cast<CoreOp>(growing.Below(kNumCoreOps));
    const GrowthRule rule = FindGrowthRule(op);
    if (rule != nullptr) rule(growing, op, growing.AnyOf(Def(op).dtypes));
  }
  return {.graph = growing.Finish(), .arguments = growing.arguments()};
}

void OpCounts::Add(const Graph& graph) {
  for (const Node& node : graph.nodes()) ++counts_[node.op->index][static_cast<size_t>(CountedDType(graph, node))];
}

void OpCounts::Add(const OpCounts& other) {
  for (size_t op = 0; op < counts_.size(); ++op) {
    for (size_t d = 0; d < counts_[op].size(); ++d) counts_[op][d] += other.counts_[op][d];
  }
}

int64_t OpCounts::count(CoreOp op) const {
  int64_t sum = 0;
  for (DType d : kAllDTypes) sum += count(op, d);
  return sum;
}

std::string OpCounts::Missing(bool every_dtype) const {
  std::string missing;
  for (const OpDef& op : CoreOps()) {
    const auto core = static_cast<CoreOp>(op.index);
    if (count(core) == 0) absl::StrAppend(&missing, op.name, "\n");
    if (!every_dtype) continue;
    for (DType d : kAllDTypes) {
      if (op.dtypes.Contains(d) && count(core, d) == 0) absl::StrAppend(&missing, op.name, " on ", Name(d), "\n");
    }
  }
  return missing;
}

std::string OpCounts::ToString() const {
  std::string text = absl::StrFormat("%-28s", "nodes");
  for (DType d : kAllDTypes) absl::StrAppendFormat(&text, "%8s", std::string(Name(d)));
  text += "\n";
  for (const OpDef& op : CoreOps()) {
    absl::StrAppendFormat(&text, "%-28s", std::string(op.name));
    for (DType d : kAllDTypes) {
      const int64_t n = count(static_cast<CoreOp>(op.index), d);
      absl::StrAppendFormat(&text, "%8s", op.dtypes.Contains(d) || n > 0 ? absl::StrCat(n) : "-");
    }
    text += "\n";
  }
  return text;
}

}  // namespace tensord::property
