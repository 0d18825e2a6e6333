#include "engine/autodiff/differentiate.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/autodiff/linearize.h"
#include "engine/autodiff/live_graph.h"
#include "engine/autodiff/transpose.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/derivative.h"
#include "engine/ir/names.h"
#include "engine/ops/derivatives/terms.h"
#include "engine/tensor/run_time_size.h"

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

// Makes the types of cotangents: sizes that the run decides are symbols of their own, since no caller can write those.
class CotangentTypes {
 public:
  explicit CotangentTypes(const Graph& graph) {
    for (const GraphInput& input : graph.inputs()) {
      for (const Dim& dim : input.type.shape) {
        if (const auto symbol = dim.size.as_symbol(); symbol.has_value()) symbols_.insert(std::string(*symbol));
      }
    }
  }

  TensorType Of(TensorType type) {
    for (Dim& dim : type.shape) {
      if (!DependsOnRun(dim.size)) continue;
      std::string symbol;
      do symbol = absl::StrCat("run_time_size_", ++last_);
      while (!symbols_.insert(symbol).second);
      dim = Dim(DimExpr::Symbol(symbol));
    }
    return type;
  }

 private:
  absl::flat_hash_set<std::string> symbols_;
  int last_ = 0;
};

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

// The graph of VJP and GRAD while it is made.
class VjpMaker {
 public:
  VjpMaker(const Graph& source, const LinearizedGraph& linearized)
      : source_(source), linearized_(linearized), target_(Graph::EmptyLike(source)) {}

  absl::StatusOr<Graph> Run(absl::Span<const ValueId> wrt, absl::Span<const size_t> outputs,
                            const DerivativeRequest& request) {
    std::vector<absl::string_view> taken = OutputNames(source_);
    for (const GraphInput& input : source_.inputs()) taken.push_back(input.name);
    for (const Node& node : linearized_.graph.nodes()) taken.push_back(node.name);
    DerivativeBuilder builder(&target_, taken, request.bounds);
    const std::vector<ValueId> cotangents = AddInputs(outputs, request.mode, &builder);
    std::vector<ValueId> copies = CopyNodes(&builder);
    RETURN_IF_ERROR(builder.status());
    Transposition transposition(source_, linearized_, std::move(copies), &target_, &builder);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const ValueId output = source_.outputs()[outputs[k]].value;
      const ValueId tangent = linearized_.tangents[static_cast<size_t>(output.index)];
      if (!tangent.is_set()) continue;
      builder.SetNode(source_.NameOf(output), "", "vjp");
      const ValueId one =
          request.mode == DerivativeMode::kGrad ? Terms(builder).Scalar(1, source_.type(output).dtype) : cotangents[k];
      transposition.AddCotangent(tangent, one);
    }
    RETURN_IF_ERROR(builder.status());
    RETURN_IF_ERROR(transposition.Run());
    if (request.keep_outputs) {
      for (const GraphOutput& output : source_.outputs()) {
        const ValueId copied = linearized_.values[static_cast<size_t>(output.value.index)];
        target_.AddOutput(output.name, copied_[static_cast<size_t>(copied.index)]);
      }
    }
    for (size_t k = 0; k < wrt.size(); ++k) {
      const GraphInput& input = source_.inputs()[static_cast<size_t>(wrt[k].index)];
      builder.SetNode(input.name, "", "zero");
      const ValueId ct = Terms(builder).OrZeros(transposition.CotangentOf(linearized_.wrt[k]), input.type);
      RETURN_IF_ERROR(builder.status());
      target_.AddOutput(builder.TakeName(absl::StrCat(input.name, ".cotangent")), ct);
    }
    return LiveGraph(std::move(target_));
  }

 private:
  // Adds the source's inputs and the cotangents; returns these, one for each of the outputs.
  std::vector<ValueId> AddInputs(absl::Span<const size_t> outputs, DerivativeMode mode, DerivativeBuilder* builder) {
    for (const GraphInput& input : source_.inputs()) target_.AddInput(input.name, input.type);
    std::vector<ValueId> cotangents;
    if (mode == DerivativeMode::kGrad) return cotangents;
    CotangentTypes types(source_);
    for (size_t i : outputs) {
      const GraphOutput& output = source_.outputs()[i];
      const std::string name = builder->TakeName(absl::StrCat(InputName(output.name), ".cotangent"));
      cotangents.push_back(target_.AddInput(name, types.Of(source_.type(output.value))));
    }
    return cotangents;
  }

  // Copies the source's nodes. Returns the target's values, by value of the linearized graph.
  std::vector<ValueId> CopyNodes(DerivativeBuilder* builder) {
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
      builder->SetNode(node.name, node.op->name, "vjp");
      const ValueId first = builder->Copy(node, operands, types);
      if (!builder->ok()) break;
      for (int32_t r = 0; r < node.num_results; ++r) {
        copied_[static_cast<size_t>(node.first_result.index + r)] = {first.index + r};
      }
    }
    return copied_;
  }

  const Graph& source_;
  const LinearizedGraph& linearized_;
  Graph target_;
  std::vector<ValueId> copied_;
};

}  // namespace

absl::StatusOr<Graph> Differentiate(const Graph& graph, const DerivativeRequest& request) {
  if (request.mode == DerivativeMode::kUnspecified || request.mode > DerivativeMode::kGrad) {
    return Refuse(Refusal::kAttributeInvalid, "the mode is unset or unknown; set MODE_JVP, MODE_VJP or MODE_GRAD");
  }
  if (graph.algebra() != Algebra::kStandard) {
    return Refuse(Refusal::kUnsupportedRequest, "a graph in another algebra than the standard one has no derivative");
  }
  ASSIGN_OR_RETURN(const std::vector<ValueId> wrt, FindWrt(graph, request.wrt));
  ASSIGN_OR_RETURN(const std::vector<size_t> outputs, FindOutputs(graph, request.mode));
  if (request.mode == DerivativeMode::kJvp) return MakeJvp(graph, wrt, outputs, request);
  ASSIGN_OR_RETURN(const LinearizedGraph linearized, Linearize(graph, wrt, OutputNames(graph), request.bounds));
  return VjpMaker(graph, linearized).Run(wrt, outputs, request);
}

}  // namespace tensord
