#include "engine/algebra/vocabulary.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/printer.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/reduction.h"
#include "engine/ops/scattering.h"
#include "engine/ops/semiring.h"

namespace tensord {
namespace {

// Returns the op's name, with the kind that decides whether the algebra has it.
std::string OpText(const Node& node) {
  if (Is(*node.op, CoreOp::kReduce)) {
    return absl::StrCat("reduce of kind ", kReduceKinds[static_cast<size_t>(node.attrs.Int("kind"))]);
  }
  if (Is(*node.op, CoreOp::kScatter)) {
    return absl::StrCat("scatter by ", kScatterCombiners[static_cast<size_t>(node.attrs.Int("combiner"))]);
  }
  return std::string(node.op->name);
}

absl::Status CheckNode(const Graph& graph, const Node& node) {
  const AlgebraPart part = AlgebraPartOf(node);
  const absl::string_view algebra = Name(graph.algebra());
  if (part == AlgebraPart::kNone) {
    return Refuse(
        Refusal::kOpOutsideAlgebra,
        absl::StrCat("the algebra ", algebra, " has no ", OpText(node),
                     ": it has add, multiply, reduce of kind sum, dot_general, einsum, scatter by add or set, "
                     "constants and ops that move elements"));
  }
  if (node.attrs.Has("algebra") && AlgebraOf(node.attrs) != Algebra::kStandard) {
    return Refuse(Refusal::kAttributeInvalid,
                  absl::StrCat("the graph is in the algebra ", algebra, ", so the node's own must be unset, and is ",
                               Name(AlgebraOf(node.attrs))));
  }
  const DType dtype = graph.type(node.operands.empty() ? node.first_result : node.operands[0]).dtype;
  if (part == AlgebraPart::kMoves || ElementsOf(graph.algebra()).Contains(dtype)) return absl::OkStatus();
  return Refuse(Refusal::kDtypeUnsupported,
                absl::StrCat(Name(dtype), " is no element of the algebra ", algebra, ", which has ",
                             graph.algebra() == Algebra::kOrAnd ? "bool only" : "i32, i64, f16, bf16, f32 and f64"));
}

}  // namespace

AlgebraPart AlgebraPartOf(const Node& node) {
  if (node.op->has(kSumsProducts)) return AlgebraPart::kCombines;
  if (node.op->family != Def(CoreOp::kAdd).family) return AlgebraPart::kNone;
  switch (static_cast<CoreOp>(node.op->index)) {
    case CoreOp::kAdd:
    case CoreOp::kMultiply:
    case CoreOp::kDotGeneral:
    case CoreOp::kEmbedDiag:
    case CoreOp::kTril:
    case CoreOp::kTriu:
    case CoreOp::kPadToMatch:
      return AlgebraPart::kCombines;
    case CoreOp::kReduce:
      return static_cast<ReduceKind>(node.attrs.Int("kind")) == ReduceKind::kSum ? AlgebraPart::kCombines
                                                                                 : AlgebraPart::kNone;
    case CoreOp::kScatter:
      switch (static_cast<ScatterCombiner>(node.attrs.Int("combiner"))) {
        case ScatterCombiner::kAdd:
          return AlgebraPart::kCombines;
        case ScatterCombiner::kSet:
          return AlgebraPart::kMoves;
        default:
          return AlgebraPart::kNone;
      }
    case CoreOp::kConstant:
    case CoreOp::kTranspose:
    case CoreOp::kReshape:
    case CoreOp::kBroadcastInDim:
    case CoreOp::kExtractDiag:
    case CoreOp::kGather:
    case CoreOp::kGatherDynamicSliceSizes:
    case CoreOp::kSlice:
    case CoreOp::kDynamicSlice:
    case CoreOp::kDynamicUpdateSlice:
    case CoreOp::kPad:
    case CoreOp::kConcatenate:
    case CoreOp::kReverse:
    case CoreOp::kShapeOf:
    case CoreOp::kDynamicTruncate:
    case CoreOp::kOptimizationBarrier:
      return AlgebraPart::kMoves;
    default:
      return AlgebraPart::kNone;
  }
}

absl::Status CheckVocabulary(const Graph& graph) {
  if (graph.algebra() == Algebra::kStandard) return absl::OkStatus();
  for (const Node& node : graph.nodes()) {
    RETURN_IF_ERROR(WithNode(CheckNode(graph, node), node.name, node.op->name));
  }
  return absl::OkStatus();
}

}  // namespace tensord
