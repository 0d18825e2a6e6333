#include "engine/autodiff/split.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/autodiff/live_graph.h"
#include "engine/base/status_macros.h"
#include "engine/ir/verifier.h"

namespace tensord {
namespace {

size_t Index(ValueId value) { return static_cast<size_t>(value.index); }

class Splitter {
 public:
  Splitter(const Graph& derivative, const DerivativeParts& parts)
      : graph_(derivative), parts_(parts), is_read_(static_cast<size_t>(derivative.num_values())) {
    const std::vector<Node>& nodes = graph_.nodes();
    for (size_t i = parts_.outputs; i < graph_.outputs().size(); ++i) is_read_[Index(graph_.outputs()[i].value)] = true;
    for (size_t i = nodes.size(); i-- > parts_.nodes;) {
      if (!IsRead(nodes[i])) continue;
      for (ValueId operand : nodes[i].operands) is_read_[Index(operand)] = true;
    }
    for (size_t i = 0; i < parts_.nodes; ++i) {
      if (nodes[i].operands.empty()) continue;
      for (int32_t r = 0; r < nodes[i].num_results; ++r) {
        const ValueId value{nodes[i].first_result.index + r};
        if (is_read_[Index(value)]) residuals_.push_back(value);
      }
    }
  }

  // Names the residuals, and makes the forward pass.
  Graph Forward(DerivativeBuilder* builder) {
    Graph forward = Graph::EmptyLike(graph_);
    std::vector<ValueId> values(is_read_.size());
    for (size_t i = 0; i < parts_.inputs; ++i) AddInput(ValueId{static_cast<int32_t>(i)}, &forward, &values);
    for (size_t i = 0; i < parts_.nodes; ++i) AddNode(graph_.nodes()[i], &forward, &values);
    for (size_t i = 0; i < parts_.outputs; ++i) {
      forward.AddOutput(graph_.outputs()[i].name, values[Index(graph_.outputs()[i].value)]);
    }
    for (ValueId residual : residuals_) {
      const std::string name = absl::StrReplaceAll(graph_.NameOf(residual), {{":", "."}});
      names_.push_back(builder->TakeName(absl::StrCat(name, ".residual")));
      forward.AddOutput(names_.back(), values[Index(residual)]);
    }
    return LiveGraph(std::move(forward));
  }

  absl::StatusOr<Graph> Backward(InputTypes* types) {
    Graph backward = Graph::EmptyLike(graph_);
    std::vector<ValueId> values(is_read_.size());
    for (size_t i = 0; i < parts_.inputs; ++i) {
      const ValueId input{static_cast<int32_t>(i)};
      if (is_read_[i] || !graph_.type(input).is_static()) AddInput(input, &backward, &values);
    }
    for (size_t i = 0; i < residuals_.size(); ++i) {
      values[Index(residuals_[i])] = backward.AddInput(names_[i], types->Of(graph_.type(residuals_[i])));
    }
    for (size_t i = parts_.inputs; i < graph_.inputs().size(); ++i) {
      AddInput(ValueId{static_cast<int32_t>(i)}, &backward, &values);
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (IsRead(node) && (i >= parts_.nodes || node.operands.empty())) AddNode(node, &backward, &values);
    }
    for (size_t i = parts_.outputs; i < graph_.outputs().size(); ++i) {
      backward.AddOutput(graph_.outputs()[i].name, values[Index(graph_.outputs()[i].value)]);
    }
    // The values' types have the sizes for which inputs have symbols now.
    if (types->has_replaced()) RETURN_IF_ERROR(InferTypes(&backward).status());
    return backward;
  }

 private:
  bool IsRead(const Node& node) const {
    for (int32_t r = 0; r < node.num_results; ++r) {
      if (is_read_[Index(node.first_result) + static_cast<size_t>(r)]) return true;
    }
    return false;
  }

  void AddInput(ValueId input, Graph* graph, std::vector<ValueId>* values) const {
    const GraphInput& from = graph_.inputs()[Index(input)];
    (*values)[Index(input)] = graph->AddInput(from.name, from.type);
  }

  void AddNode(const Node& node, Graph* graph, std::vector<ValueId>* values) const {
    Node copy = node;
    for (ValueId& operand : copy.operands) operand = (*values)[Index(operand)];
    const ValueId first = graph->AddNode(std::move(copy));
    for (int32_t r = 0; r < node.num_results; ++r) {
      const ValueId from{node.first_result.index + r}, to{first.index + r};
      graph->set_type(to, graph_.type(from));
      (*values)[Index(from)] = to;
    }
  }

  const Graph& graph_;
  const DerivativeParts parts_;
  std::vector<bool> is_read_;       // by value: by the backward pass
  std::vector<ValueId> residuals_;  // in the order of their nodes
  std::vector<std::string> names_;  // of residuals
};

}  // namespace

absl::StatusOr<SplitDerivative> Split(const Graph& derivative, const DerivativeParts& parts, InputTypes* types,
                                      DerivativeBuilder* builder) {
  Splitter splitter(derivative, parts);
  Graph forward = splitter.Forward(builder);
  ASSIGN_OR_RETURN(Graph backward, splitter.Backward(types));
  return SplitDerivative{.forward = std::move(forward), .backward = std::move(backward)};
}

}  // namespace tensord
