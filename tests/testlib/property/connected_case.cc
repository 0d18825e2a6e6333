#include "tests/testlib/property/connected_case.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/families/all_families.h"
#include "engine/ir/size_binding.h"
#include "engine/ir/sized_graph.h"
#include "engine/ops/core_ops.h"
#include "tests/testlib/property/grow_patterns.h"
#include "tests/testlib/property/growing_graph.h"
#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {
namespace {

// Around the widths of vectors, tiles and panels, and past them.
const std::vector<int64_t> kSizes = {0,  1,  2,  3,  5,  8,  15,  16,  17,  25,  30,
                                     32, 33, 48, 60, 64, 65, 100, 128, 200, 256, 300};

// The dtypes of a graph's tensors, beside indices.
constexpr DType kDTypes[] = {DType::kF64, DType::kF64, DType::kF32, DType::kF32,  DType::kC128,
                             DType::kC64, DType::kI64, DType::kI32, DType::kBF16, DType::kF16};

// The most products of one contraction, for the reference evaluator's sake.
constexpr int64_t kMostProducts = int64_t{1} << 21;

// Ops that have a kernel of their own or end up in a fused one, the former more often.
constexpr CoreOp kConnected[] = {CoreOp::kDotGeneral,
                                 CoreOp::kDotGeneral,
                                 CoreOp::kDotGeneral,
                                 CoreOp::kReduce,
                                 CoreOp::kReduce,
                                 CoreOp::kReduce,
                                 CoreOp::kSlice,
                                 CoreOp::kSlice,
                                 CoreOp::kSlice,
                                 CoreOp::kTranspose,
                                 CoreOp::kTranspose,
                                 CoreOp::kGather,
                                 CoreOp::kScatter,
                                 CoreOp::kReshape,
                                 CoreOp::kBroadcastInDim,
                                 CoreOp::kConcatenate,
                                 CoreOp::kPad,
                                 CoreOp::kReverse,
                                 CoreOp::kConvert,
                                 CoreOp::kSelect,
                                 CoreOp::kMultiply,
                                 CoreOp::kMultiply,
                                 CoreOp::kAdd,
                                 CoreOp::kSubtract,
                                 CoreOp::kExp,
                                 CoreOp::kTanh,
                                 CoreOp::kMaximum,
                                 CoreOp::kNegate,
                                 CoreOp::kCompare,
                                 CoreOp::kDynamicSlice,
                                 CoreOp::kDynamicUpdateSlice,
                                 CoreOp::kTril,
                                 CoreOp::kIota,
                                 CoreOp::kExtractDiag,
                                 CoreOp::kEmbedDiag};

// Grows an einsum of two or three integer tensors, whose sums are the same in any order. Labels follow sizes, so that
// axes match.
void GrowEinsum(GrowingGraph& graph) {
  const DType dtype = graph.OneIn(2) ? DType::kI64 : DType::kI32;
  std::vector<ValueId> operands;
  for (int64_t i = graph.Between(2, 3); i > 0; --i) operands.push_back(graph.Any(dtype, /*exact=*/true));
  std::vector<Dim> labelled;  // by label
  std::string equation, used;
  for (const ValueId operand : operands) {
    if (!equation.empty()) equation += ",";
    std::string term;
    for (const Dim& dim : graph.Type(operand).shape) {
      size_t label = 0;
      while (label < labelled.size() &&
             (!(labelled[label] == dim) || term.find(static_cast<char>('a' + label)) != std::string::npos ||
              graph.OneIn(3))) {
        ++label;
      }
      if (label == labelled.size()) labelled.push_back(dim);
      if (label >= 26) return;
      term += static_cast<char>('a' + label);
    }
    equation += term;
    used += term;
  }
  double products = 1;
  for (const Dim& dim : labelled) products *= static_cast<double>(graph.GreatestSize(dim));
  if (products > static_cast<double>(kMostProducts)) return;
  equation += "->";
  for (size_t label = 0; label < labelled.size(); ++label) {
    if (graph.OneIn(2)) equation += static_cast<char>('a' + label);
  }
  const OpDef& einsum = *FamilyRegistry().Find("tensord.einsum.v1.Einsum");
  graph.AppendExact(einsum, Attributes(einsum.attrs).Set("equation", equation), operands);
}

// A part of a tensor that has no elements, and a reduction along the empty axis, after which there are some again.
void GrowNothing(GrowingGraph& graph) {
  const ValueId x = graph.Any();
  const int64_t rank = graph.rank(x);
  if (rank == 0) return;
  const int64_t empty = graph.Below(rank);
  Ints start, limit;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t size = graph.LeastSize(graph.Type(x).shape[static_cast<size_t>(axis)]);
    limit.push_back(size);
    start.push_back(axis == empty ? size : 0);
  }
  const CoreOp slice = CoreOp::kSlice;
  const std::optional<ValueId> nothing =
      graph.Append(slice, AttrsOf(slice).Set("start_indices", start).Set("limit_indices", limit), {x});
  if (!nothing.has_value()) return;
  Ints order = graph.Permutation(rank), reduced;
  const std::optional<ValueId> turned =
      graph.Append(CoreOp::kTranspose, AttrsOf(CoreOp::kTranspose).Set("permutation", order), {*nothing});
  if (!turned.has_value()) return;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (order[static_cast<size_t>(axis)] == empty || graph.OneIn(4)) reduced.push_back(axis);
  }
  const auto kind = static_cast<int64_t>(graph.OneIn(2) ? ReduceKind::kSum : ReduceKind::kMax);
  graph.Append(CoreOp::kReduce, AttrsOf(CoreOp::kReduce).Set("kind", kind).Set("dimensions", reduced), {*turned});
}

void GrowConnected(GrowingGraph& graph) {
  if (graph.OneIn(10)) return GrowNothing(graph);
  if (graph.OneIn(12)) return GrowEinsum(graph);
  if (graph.OneIn(6)) return GrowPattern(graph);
  const CoreOp op = kConnected[graph.Below(std::size(kConnected))];
  DType dtype = graph.Type(graph.Any()).dtype;
  if (!Def(op).dtypes.Contains(dtype)) dtype = graph.AnyOf(Def(op).dtypes);
  FindGrowthRule(op)(graph, op, dtype);
}

SizeBinding BindingOf(const Graph& graph, const std::vector<Literal>& arguments) {
  std::vector<const TensorType*> inputs;
  std::vector<ConcreteType> types;
  for (const GraphInput& input : graph.inputs()) inputs.push_back(&input.type);
  for (const Literal& argument : arguments) types.push_back(argument.type());
  return SizeBinding::Create(inputs, types).value();
}

}  // namespace

RandomCase MakeConnectedCase(uint64_t seed) {
  std::mt19937_64 random(seed);
  const DType dtype = kDTypes[random() % std::size(kDTypes)];
  const GrowthOptions options = {.max_nodes = 16,
                                 .max_elements = 40000,
                                 .size_choices = 3,
                                 .sizes = kSizes,
                                 .max_products = kMostProducts,
                                 .dtypes = {dtype, DType::kI32},
                                 .connected = true};
  GrowingGraph growing(options, &random);
  const size_t nodes = static_cast<size_t>(growing.Between(2, options.max_nodes));
  for (size_t tries = 0; growing.graph().nodes().size() < nodes && tries < 4 * nodes; ++tries) GrowConnected(growing);
  return {.graph = growing.Finish(), .arguments = growing.arguments()};
}

Graph SizedFor(const Graph& graph, const std::vector<Literal>& arguments) {
  return WithSizes(graph, BindingOf(graph, arguments)).value();
}

Graph ConstantOf(const Graph& graph, const std::vector<Literal>& arguments) {
  const Graph sized = SizedFor(graph, arguments);
  Graph constant = Graph::EmptyLike(sized);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const OpDef& op = Def(CoreOp::kConstant);
    constant.AddNode({.name = sized.inputs()[i].name,
                      .op = &op,
                      .attrs = Attributes(op.attrs).Set("value", std::make_shared<const Literal>(arguments[i]))});
  }
  // Values are numbered as they were: inputs stood before nodes.
  for (const Node& node : sized.nodes()) constant.AddNode(node);
  for (const GraphOutput& output : sized.outputs()) constant.AddOutput(output.name, output.value);
  return constant;
}

}  // namespace tensord::property
