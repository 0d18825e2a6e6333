#include "engine/autodiff/differentiate.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/autodiff/input_types.h"
#include "engine/autodiff/linearize.h"
#include "engine/autodiff/live_graph.h"
#include "engine/autodiff/recomputation.h"
#include "engine/autodiff/split.h"
#include "engine/autodiff/transpose.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/derivative.h"
#include "engine/ir/names.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {
namespace {

absl::StatusOr<std::vector<ValueId>> FindWrt(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<ValueId> wrt;
  if (names.empty()) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      if (IsDifferentiable(graph.inputs()[i].type.dtype)) wrt.push_back({static_cast<int32_t>(i)});
    }
    if (!wrt.empty()) return wrt;
    return Refuse(Refusal::kDtypeUnsupported,
                  "no input has a dtype that can be differentiated: a float or complex one");
  }
  absl::flat_hash_map<absl::string_view, int32_t> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) inputs[graph.inputs()[i].name] = static_cast<int32_t>(i);
  absl::flat_hash_set<int32_t> seen;
  for (const std::string& name : names) {
    const auto found = inputs.find(name);
    if (found == inputs.end()) {
      return Refuse(Refusal::kValueUnknown,
                    absl::StrCat("wrt names \"", PrintableName(name), "\", which is no input of the graph"));
    }
    const TensorType& type = graph.inputs()[static_cast<size_t>(found->second)].type;
    if (!IsDifferentiable(type.dtype)) {
      return Refuse(Refusal::kDtypeUnsupported,
                    absl::StrCat("wrt names the input \"", PrintableName(name), "\", which is ", ToString(type),
                                 "; only floats and complex numbers can be differentiated"));
    }
    if (!seen.insert(found->second).second) {
      return Refuse(Refusal::kNameDuplicate, absl::StrCat("wrt names the input \"", PrintableName(name), "\" twice"));
    }
    wrt.push_back({found->second});
  }
  return wrt;
}

// Returns the positions of the outputs that have derivatives.
absl::StatusOr<std::vector<size_t>> FindOutputs(const Graph& graph, DerivativeMode mode) {
  std::vector<size_t> found;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (IsDifferentiable(graph.type(graph.outputs()[i].value).dtype)) found.push_back(i);
  }
  if (mode != DerivativeMode::kGrad) {
    if (!found.empty()) return found;
    return Refuse(Refusal::kDtypeUnsupported,
                  "no output has a dtype that can be differentiated: a float or complex one");
  }
  if (graph.outputs().size() != 1) {
    return Refuse(Refusal::kAttributeInvalid,
                  absl::StrCat("MODE_GRAD takes a graph of one output, and this one has ", graph.outputs().size()));
  }
  const TensorType& type = graph.type(graph.outputs()[0].value);
  if (type.rank() != 0) {
    return Refuse(Refusal::kRankMismatch,
                  absl::StrCat("MODE_GRAD takes an output of rank 0, and it is ", ToString(type), "; use MODE_VJP"));
  }
  if (!kFloats.Contains(type.dtype)) {
    return Refuse(Refusal::kDtypeUnsupported,
                  absl::StrCat("MODE_GRAD takes a real float output, and it is ", ToString(type)));
  }
  return found;
}

// An input may have no ':' in its name.
std::string InputName(absl::string_view output) { return absl::StrReplaceAll(output, {{":", "."}}); }

std::vector<absl::string_view> OutputNames(const Graph& graph) {
  std::vector<absl::string_view> names;
  for (const GraphOutput& output : graph.outputs()) names.push_back(output.name);
  return names;
}

absl::StatusOr<Graph> MakeJvp(const Graph& source, absl::Span<const ValueId> wrt, absl::Span<const size_t> outputs,
                              const DerivativeRequest& request) {
  ASSIGN_OR_RETURN(LinearizedGraph linearized, Linearize(source, wrt, OutputNames(source), request.bounds));
  Graph& graph = linearized.graph;
  DerivativeBuilder builder(&graph, OutputNames(source), request.bounds);
  for (const Node& node : graph.nodes()) builder.OfferSizes(node.first_result);
  if (request.keep_outputs) {
    for (const GraphOutput& output : source.outputs()) {
      graph.AddOutput(output.name, linearized.values[static_cast<size_t>(output.value.index)]);
    }
  }
  for (size_t i : outputs) {
    const GraphOutput& output = source.outputs()[i];
    builder.SetNode(source.NameOf(output.value), "", "zero");
    const size_t value = static_cast<size_t>(output.value.index);
    const ValueId tangent = Terms(builder).OrZeros(linearized.tangents[value], source.type(output.value));
    RETURN_IF_ERROR(builder.status());
    graph.AddOutput(builder.TakeName(absl::StrCat(output.name, ".tangent")), tangent);
  }
  return LiveGraph(std::move(graph));
}

// The graph of VJP and GRAD while it is made: the forward pass, and then the backward one.
class VjpMaker {
 public:
  VjpMaker(const Graph& source, const LinearizedGraph& linearized, const DerivativeRequest& request)
      : source_(source),
        linearized_(linearized),
        request_(request),
        target_(Graph::EmptyLike(source)),
        types_(source),
        builder_(&target_, TakenNames(source, linearized), request.bounds) {}

  absl::StatusOr<Graph> Whole(absl::Span<const ValueId> wrt, absl::Span<const size_t> outputs) && {
    RETURN_IF_ERROR(Make(wrt, outputs, /*is_whole=*/true));
    return LiveGraph(std::move(target_));
  }

  absl::StatusOr<SplitDerivative> InTwo(absl::Span<const ValueId> wrt, absl::Span<const size_t> outputs) && {
    RETURN_IF_ERROR(Make(wrt, outputs, /*is_whole=*/false));
    return Split(target_,
                 {.inputs = source_.inputs().size(), .nodes = forward_nodes_, .outputs = source_.outputs().size()},
                 &types_, &builder_);
  }

 private:
  static std::vector<absl::string_view> TakenNames(const Graph& source, const LinearizedGraph& linearized) {
    std::vector<absl::string_view> taken = OutputNames(source);
    for (const GraphInput& input : source.inputs()) taken.push_back(input.name);
    for (const Node& node : linearized.graph.nodes()) taken.push_back(node.name);
    return taken;
  }

  absl::Status Make(absl::Span<const ValueId> wrt, absl::Span<const size_t> outputs, bool is_whole) {
    std::vector<bool> is_kept;
    if (!request_.checkpoints.empty()) {
      ASSIGN_OR_RETURN(is_kept, FindCheckpoints(source_, request_.checkpoints));
    }
    const std::vector<ValueId> cotangents = AddInputs(outputs);
    std::vector<ValueId> copies = CopyNodes();
    RETURN_IF_ERROR(builder_.status());
    forward_nodes_ = target_.nodes().size();
    Transposition transposition(source_, linearized_, std::move(copies), is_kept, &target_, &builder_);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const ValueId output = source_.outputs()[outputs[k]].value;
      const ValueId tangent = linearized_.tangents[static_cast<size_t>(output.index)];
      if (!tangent.is_set()) continue;
      builder_.SetNode(source_.NameOf(output), "", "vjp");
      const ValueId one = request_.mode == DerivativeMode::kGrad
                              ? Terms(builder_).Scalar(1, source_.type(output).dtype)
                              : OfSameSizes(cotangents[k], source_.type(output), is_whole);
      transposition.AddCotangent(tangent, one);
    }
    RETURN_IF_ERROR(builder_.status());
    RETURN_IF_ERROR(transposition.Run());
    return AddOutputs(wrt, transposition);
  }

  // Adds the source's inputs and the cotangents; returns these, one for each of the outputs.
  std::vector<ValueId> AddInputs(absl::Span<const size_t> outputs) {
    for (const GraphInput& input : source_.inputs()) target_.AddInput(input.name, input.type);
    std::vector<ValueId> cotangents;
    if (request_.mode == DerivativeMode::kGrad) return cotangents;
    for (size_t i : outputs) {
      const GraphOutput& output = source_.outputs()[i];
      const std::string name = builder_.TakeName(absl::StrCat(InputName(output.name), ".cotangent"));
      cotangents.push_back(target_.AddInput(name, types_.Of(source_.type(output.value))));
    }
    return cotangents;
  }

  // A run requires the value's sizes of its cotangent, which has symbols of its own for those that the run decides. In
  // a backward pass alone the value is a residual, which has the same symbols.
  ValueId OfSameSizes(ValueId cotangent, const TensorType& type, bool is_whole) {
    if (!is_whole || builder_.type(cotangent) == type) return cotangent;
    return Terms(builder_).Mul(cotangent, Terms(builder_).Full(1, type));
  }

  // Copies the source's nodes. Returns the target's values, by value of the linearized graph.
  std::vector<ValueId> CopyNodes() {
    const Graph& graph = linearized_.graph;
    copied_.resize(static_cast<size_t>(graph.num_values()));
    for (size_t i = 0; i < source_.inputs().size(); ++i) copied_[i] = {static_cast<int32_t>(i)};
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      if (linearized_.differentiated[i] >= 0) continue;
      const Node& node = graph.nodes()[i];
      DerivativeBuilder::Values operands;
      for (ValueId operand : node.operands) operands.push_back(copied_[static_cast<size_t>(operand.index)]);
      std::vector<const TensorType*> types;
      for (int32_t r = 0; r < node.num_results; ++r) types.push_back(&graph.type({node.first_result.index + r}));
      builder_.SetNode(node.name, node.op->name, "vjp");
      const ValueId first = builder_.Copy(node, operands, types);
      if (!builder_.ok()) break;
      for (int32_t r = 0; r < node.num_results; ++r) {
        copied_[static_cast<size_t>(node.first_result.index + r)] = {first.index + r};
      }
    }
    return copied_;
  }

  absl::Status AddOutputs(absl::Span<const ValueId> wrt, const Transposition& transposition) {
    if (request_.keep_outputs) {
      for (const GraphOutput& output : source_.outputs()) {
        const ValueId copied = linearized_.values[static_cast<size_t>(output.value.index)];
        target_.AddOutput(output.name, copied_[static_cast<size_t>(copied.index)]);
      }
    }
    for (size_t k = 0; k < wrt.size(); ++k) {
      const GraphInput& input = source_.inputs()[static_cast<size_t>(wrt[k].index)];
      builder_.SetNode(input.name, "", "zero");
      const ValueId ct = Terms(builder_).OrZeros(transposition.CotangentOf(linearized_.wrt[k]), input.type);
      RETURN_IF_ERROR(builder_.status());
      target_.AddOutput(builder_.TakeName(absl::StrCat(input.name, ".cotangent")), ct);
    }
    return absl::OkStatus();
  }

  const Graph& source_;
  const LinearizedGraph& linearized_;
  const DerivativeRequest& request_;
  Graph target_;
  InputTypes types_;
  DerivativeBuilder builder_;
  std::vector<ValueId> copied_;
  size_t forward_nodes_ = 0;
};

// The values that a derivative is of.
struct Ends {
  std::vector<ValueId> wrt;
  std::vector<size_t> outputs;
};

absl::StatusOr<Ends> FindEnds(const Graph& graph, const DerivativeRequest& request) {
  if (request.mode == DerivativeMode::kUnspecified || request.mode > DerivativeMode::kGrad) {
    return Refuse(Refusal::kAttributeInvalid, "the mode is unset or unknown; set MODE_JVP, MODE_VJP or MODE_GRAD");
  }
  if (request.mode == DerivativeMode::kJvp && !request.checkpoints.empty()) {
    return Refuse(Refusal::kAttributeInvalid,
                  "MODE_JVP takes no checkpoints, since it has no backward pass; use MODE_VJP or MODE_GRAD");
  }
  if (graph.algebra() != Algebra::kStandard) {
    return Refuse(Refusal::kUnsupportedRequest, "a graph in another algebra than the standard one has no derivative");
  }
  ASSIGN_OR_RETURN(std::vector<ValueId> wrt, FindWrt(graph, request.wrt));
  ASSIGN_OR_RETURN(std::vector<size_t> outputs, FindOutputs(graph, request.mode));
  return Ends{.wrt = std::move(wrt), .outputs = std::move(outputs)};
}

}  // namespace

absl::StatusOr<Graph> Differentiate(const Graph& graph, const DerivativeRequest& request) {
  ASSIGN_OR_RETURN(const Ends ends, FindEnds(graph, request));
  if (request.mode == DerivativeMode::kJvp) return MakeJvp(graph, ends.wrt, ends.outputs, request);
  ASSIGN_OR_RETURN(const LinearizedGraph linearized, Linearize(graph, ends.wrt, OutputNames(graph), request.bounds));
  return VjpMaker(graph, linearized, request).Whole(ends.wrt, ends.outputs);
}

absl::StatusOr<SplitDerivative> DifferentiateInTwo(const Graph& graph, const DerivativeRequest& request) {
  if (request.mode == DerivativeMode::kJvp) {
    return Refuse(Refusal::kAttributeInvalid,
                  "MODE_JVP cannot be split, since it has no backward pass; use MODE_VJP or MODE_GRAD");
  }
  DerivativeRequest kept = request;
  kept.keep_outputs = true;
  ASSIGN_OR_RETURN(const Ends ends, FindEnds(graph, kept));
  ASSIGN_OR_RETURN(const LinearizedGraph linearized, Linearize(graph, ends.wrt, OutputNames(graph), request.bounds));
  return VjpMaker(graph, linearized, kept).InTwo(ends.wrt, ends.outputs);
}

}  // namespace tensord
