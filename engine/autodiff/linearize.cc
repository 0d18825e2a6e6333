#include "engine/autodiff/linearize.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/derivative.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// Returns the number of operands that the op computes with; others it reads the sizes of, or waits for.
size_t ComputedOperands(const Node& node) {
  const size_t count = node.operands.size();
  if (Is(*node.op, CoreOp::kPadToMatch) || Is(*node.op, CoreOp::kOptimizationBarrier)) return 1;
  return node.op->has(kShapeSources) ? std::min(count, static_cast<size_t>(node.op->max_operands)) : count;
}

size_t At(ValueId value) { return static_cast<size_t>(value.index); }

// Returns for each value whether a differentiable output depends on it through values of differentiable dtypes.
std::vector<bool> AskedFor(const Graph& graph) {
  std::vector<bool> asked(static_cast<size_t>(graph.num_values()));
  const auto is_smooth = [&graph](ValueId v) { return IsDifferentiable(graph.type(v).dtype); };
  for (const GraphOutput& output : graph.outputs()) asked[At(output.value)] = is_smooth(output.value);
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    bool is_asked = false;
    for (int32_t r = 0; r < node.num_results; ++r) is_asked |= asked[At(node.first_result) + static_cast<size_t>(r)];
    if (!is_asked) continue;
    for (size_t k = 0; k < ComputedOperands(node); ++k) {
      if (is_smooth(node.operands[k])) asked[At(node.operands[k])] = true;
    }
  }
  return asked;
}

// Walks over the source and appends its nodes, each with the nodes of its tangents.
class Linearizer {
 public:
  Linearizer(const Graph& source, absl::Span<const absl::string_view> taken, const DerivativeBounds& bounds)
      : source_(source), asked_(AskedFor(source)), done_{.graph = Graph::EmptyLike(source)} {
    std::vector<absl::string_view> names(taken.begin(), taken.end());
    for (const GraphInput& input : source.inputs()) names.push_back(input.name);
    for (const Node& node : source.nodes()) names.push_back(node.name);
    builder_ = std::make_unique<DerivativeBuilder>(&done_.graph, names, bounds);
    done_.values.resize(asked_.size());
    done_.tangents.resize(asked_.size());
  }

  absl::StatusOr<LinearizedGraph> Run(absl::Span<const ValueId> wrt) {
    for (size_t i = 0; i < source_.inputs().size(); ++i) {
      done_.values[i] = done_.graph.AddInput(source_.inputs()[i].name, source_.inputs()[i].type);
    }
    done_.is_linear.resize(source_.inputs().size(), false);
    for (ValueId input : wrt) {
      const GraphInput& of = source_.inputs()[At(input)];
      done_.tangents[At(input)] = done_.graph.AddInput(builder_->TakeName(absl::StrCat(of.name, ".tangent")), of.type);
      done_.wrt.push_back(done_.tangents[At(input)]);
      done_.is_linear.push_back(true);
    }
    for (size_t i = 0; i < source_.nodes().size(); ++i) {
      RETURN_IF_ERROR(CheckStopped());
      RETURN_IF_ERROR(AddNode(source_.nodes()[i]));
      MarkNew(static_cast<int32_t>(i));
    }
    return std::move(done_);
  }

 private:
  absl::Status AddNode(const Node& node) {
    DerivativeBuilder::Values operands, tangents;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      operands.push_back(done_.values[At(node.operands[k])]);
      tangents.push_back(k < ComputedOperands(node) ? done_.tangents[At(node.operands[k])] : ValueId());
    }
    std::vector<const TensorType*> types;
    absl::InlinedVector<bool, 4> wanted;
    for (int32_t r = 0; r < node.num_results; ++r) {
      const ValueId result{node.first_result.index + r};
      types.push_back(&source_.type(result));
      wanted.push_back(asked_[At(result)]);
    }
    builder_->SetNode(node.name, node.op->name, "jvp");
    const ValueId first = builder_->Copy(node, operands, types);
    RETURN_IF_ERROR(builder_->status());
    MarkNew(-1);
    DerivativeBuilder::Values results, result_tangents(wanted.size());
    for (int32_t r = 0; r < node.num_results; ++r) {
      results.push_back({first.index + r});
      done_.values[At(node.first_result) + static_cast<size_t>(r)] = results.back();
    }
    if (std::none_of(tangents.begin(), tangents.end(), [](ValueId t) { return t.is_set(); })) return absl::OkStatus();
    if (std::none_of(wanted.begin(), wanted.end(), [](bool w) { return w; })) return absl::OkStatus();
    if (!node.op->jvp.has()) return RefuseWithoutRule(*node.op, node.name, node.op->jvp.reason());
    JvpCall call{.op = *node.op,
                 .attrs = node.attrs,
                 .operands = operands,
                 .results = results,
                 .tangents = tangents,
                 .wanted = wanted,
                 .result_tangents = absl::MakeSpan(result_tangents),
                 .graph = *builder_};
    node.op->jvp.get()(call);
    RETURN_IF_ERROR(builder_->status());
    for (size_t r = 0; r < wanted.size(); ++r) {
      if (!wanted[r] || !result_tangents[r].is_set()) continue;
      done_.tangents[At(node.first_result) + r] = result_tangents[r];
      // The same, but for a size that the run decides: the tangent's is one of its own, and equal.
      if (!(done_.graph.type(result_tangents[r]) == *types[r])) done_.graph.set_type(result_tangents[r], *types[r]);
    }
    return absl::OkStatus();
  }

  // Notes of the nodes that were added since the last call which are linear, and the node that they differentiate.
  void MarkNew(int32_t differentiated) {
    const Graph& graph = done_.graph;
    for (size_t i = done_.differentiated.size(); i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      bool is_linear = false;
      for (size_t k = 0; k < ComputedOperands(node); ++k) is_linear |= done_.is_linear[At(node.operands[k])];
      done_.is_linear.resize(done_.is_linear.size() + static_cast<size_t>(node.num_results), is_linear);
      done_.differentiated.push_back(differentiated);
    }
  }

  const Graph& source_;
  const std::vector<bool> asked_;
  LinearizedGraph done_;
  std::unique_ptr<DerivativeBuilder> builder_;
};

}  // namespace

absl::Status RefuseWithoutRule(const OpDef& op, absl::string_view node, absl::string_view why) {
  return WithNode(
      Refuse(Refusal::kUnsupportedRequest, absl::StrCat("there is no derivative of ", op.name, " here: ", why)), node,
      op.name);
}

absl::StatusOr<LinearizedGraph> Linearize(const Graph& source, absl::Span<const ValueId> wrt,
                                          absl::Span<const absl::string_view> taken, const DerivativeBounds& bounds) {
  return Linearizer(source, taken, bounds).Run(wrt);
}

}  // namespace tensord
