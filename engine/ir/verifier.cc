#include "engine/ir/verifier.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/names.h"

namespace tensord {
namespace {

// Returns the symbols that inputs bind: those that are the whole size of an axis.
absl::StatusOr<absl::flat_hash_set<std::string>> BoundSymbols(const Graph& graph) {
  absl::flat_hash_set<std::string> bound;
  for (const GraphInput& input : graph.inputs()) {
    for (const Dim& dim : input.type.shape) {
      if (const auto symbol = dim.size.as_symbol(); symbol.has_value()) bound.insert(std::string(*symbol));
    }
  }
  return bound;
}

absl::Status CheckSymbols(const DimExpr& size, const absl::flat_hash_set<std::string>& bound) {
  absl::Status status;
  size.ForEachLeaf([&](const DimAtom& atom) {
    if (!status.ok()) return;
    if (atom.kind == DimAtom::Kind::kSymbol && !bound.contains(atom.symbol) && !IsRunTimeSymbol(atom.symbol)) {
      status =
          Refuse(Refusal::kSymbolUnbound, absl::StrCat("the size ", size.ToString(), " uses the symbol \"", atom.symbol,
                                                       "\", which is not the whole size of any input's axis"));
    }
    if (atom.kind == DimAtom::Kind::kOperandAxis) {
      status = Refuse(Refusal::kDimExprInvalid,
                      absl::StrCat("the size ", size.ToString(), " names an operand where there is none"));
    }
  });
  return status;
}

absl::Status CheckType(const TensorType& type, const absl::flat_hash_set<std::string>& bound) {
  if (type.dtype == DType::kInvalid) return Refuse(Refusal::kDtypeUnsupported, "a type has no dtype; set one");
  if (type.rank() > kMaxRank) return RefuseLimit("value_rank", kMaxRank, type.rank(), "rank of a value");
  Shape known;
  for (const Dim& dim : type.shape) {
    if (!dim.size.is_constant()) {
      RETURN_IF_ERROR(CheckSymbols(dim.size, bound));
      continue;
    }
    known.push_back(dim.size.constant());
  }
  if (!NumBytes(type.dtype, known).has_value()) {
    return Refuse(Refusal::kShapeOverflow,
                  absl::StrCat("a size is negative or the bytes are more than 2^56: ", ToString(type)));
  }
  return absl::OkStatus();
}

absl::Status CheckAttributes(const Node& node) {
  for (size_t i = 0; i < node.op->attrs.size(); ++i) {
    const AttrDef& def = node.op->attrs[i];
    if (def.engine_only) continue;
    const AttrValue& value = node.attrs.at(i);
    if (def.kind == AttrKind::kEnum && !def.may_be_unset && std::get<int64_t>(value) == 0) {
      return Refuse(Refusal::kAttributeInvalid, absl::StrCat("the attribute ", def.name, " is unset"));
    }
    if (def.kind == AttrKind::kDType && !def.may_be_unset && std::get<DType>(value) == DType::kInvalid) {
      return Refuse(Refusal::kAttributeInvalid, absl::StrCat("the attribute ", def.name, " is unset"));
    }
    if (def.kind == AttrKind::kLiteral && std::get<LiteralPtr>(value) == nullptr) {
      return Refuse(Refusal::kAttributeInvalid, absl::StrCat("the attribute ", def.name, " is unset"));
    }
  }
  return absl::OkStatus();
}

std::string WantedOperands(const OpDef& op) {
  if (op.max_operands == kVariadic || op.has(kShapeSources)) return absl::StrCat("at least ", op.min_operands);
  if (op.min_operands == op.max_operands) return absl::StrCat(op.min_operands);
  return absl::StrCat(op.min_operands, " to ", op.max_operands);
}

// Returns the cost of reading the sizes of a type, beyond naming a symbol.
int64_t PartsToRead(const TensorType& type) {
  int64_t parts = 0;
  for (const Dim& dim : type.shape) parts += std::max<int64_t>(dim.size.num_parts() - 1, 0);
  return parts;
}

int64_t PartsToKeep(const TensorType& type) {
  int64_t parts = 0;
  for (const Dim& dim : type.shape) parts += dim.size.num_parts();
  return parts;
}

// Infers the types of a node with a body. The body's requirements on sizes were stated by its nodes before they went
// into it.
absl::StatusOr<ResultTypes> InferFromBody(const Graph& graph, const Node& node) {
  const Graph& body = *node.body;
  if (body.inputs().size() != node.operands.size()) {
    return Refuse(Refusal::kOperandCount, absl::StrCat("has ", node.operands.size(), " operands, and its body ",
                                                       body.inputs().size(), " inputs"));
  }
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const TensorType& type = graph.type(node.operands[i]);
    if (!(type == body.inputs()[i].type)) {
      return Refuse(Refusal::kShapeMismatch, absl::StrCat("operand ", i, " is ", ToString(type),
                                                          ", and the body's input ", ToString(body.inputs()[i].type)));
    }
  }
  RETURN_IF_ERROR(VerifyTypes(body));
  ResultTypes types;
  for (const GraphOutput& output : body.outputs()) types.push_back(body.type(output.value));
  return types;
}

// Calls InferNode; adds the parts of size expressions that were read and made, and refuses if they are too many.
absl::StatusOr<ResultTypes> InferCounted(const Graph& graph, const Node& node, int32_t node_index,
                                         std::vector<ShapeGuard>* guards, RunTimeBounds* bounds, int64_t* parts) {
  if (node.body != nullptr) return InferFromBody(graph, node);
  const OpDef& op = *node.op;
  const int count = static_cast<int>(node.operands.size());
  const bool too_many = count > op.max_operands && !op.has(kShapeSources);
  if (count < op.min_operands || too_many) {
    return Refuse(Refusal::kOperandCount, absl::StrCat("takes ", WantedOperands(op), " operands, and has ", count));
  }
  RETURN_IF_ERROR(CheckAttributes(node));
  absl::InlinedVector<const TensorType*, 4> operands;
  for (ValueId v : node.operands) {
    operands.push_back(&graph.type(v));
    *parts += PartsToRead(*operands.back());
  }
  RETURN_IF_ERROR(CheckExpressionParts(*parts));
  InferContext context(node.attrs, operands, node_index, node.name, guards, bounds);
  ASSIGN_OR_RETURN(ResultTypes types, op.infer.get()(context));
  if (static_cast<int32_t>(types.size()) != node.num_results) {
    return Refuse(Refusal::kInternal, absl::StrCat("the type rule gives ", types.size(), " types to a node of ",
                                                   node.num_results, " results"));
  }
  *parts += context.expression_parts();
  for (TensorType& type : types) {
    *parts += PartsToKeep(type);
    for (Dim& dim : type.shape) {
      if (!dim.is_static()) dim = WithExtent(std::move(dim.size), *bounds);
    }
  }
  RETURN_IF_ERROR(CheckExpressionParts(*parts));
  return types;
}

// Guards the sizes of results that a run may refuse, each size once, even if the node is dead or fused then. Sizes that
// a run decides are left to it: they do not exist if the node that decides them is dead.
class SizeGuards {
 public:
  explicit SizeGuards(std::vector<ShapeGuard>* guards) : guards_(guards) {}

  // `own`: the index of the first guard that the node itself asked for.
  void Add(const Graph& graph, const Node& node, int32_t index, size_t own, const ResultTypes& types) {
    for (const TensorType& type : types) {
      for (const Dim& dim : type.shape) {
        if (dim.is_static() || dim.extent != Extent::kExact || !dim.size.may_be_refused()) continue;
        if (IsAnOperands(graph, node, dim.size) || IsImplied(own, dim.size)) continue;
        if (!seen_.insert(dim.size.ToString()).second) continue;
        guards_->push_back({.kind = ShapeGuard::Kind::kAtMost,
                            .lhs = DimExpr(0),
                            .rhs = dim.size,
                            .what = "a size of the result is negative",
                            .node = index});
      }
    }
  }

 private:
  static bool IsAnOperands(const Graph& graph, const Node& node, const DimExpr& size) {
    return std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
      const auto& shape = graph.type(operand).shape;
      return std::any_of(shape.begin(), shape.end(), [&](const Dim& dim) { return dim.size == size; });
    });
  }
  // Tells whether the node asks for a <= b, and the size is b - a.
  bool IsImplied(size_t own, const DimExpr& size) const {
    return std::any_of(guards_->begin() + static_cast<ptrdiff_t>(own), guards_->end(), [&](const ShapeGuard& guard) {
      if (guard.kind != ShapeGuard::Kind::kAtMost) return false;
      const absl::StatusOr<DimExpr> between = DimExpr::Subtract(guard.rhs, guard.lhs);
      return between.ok() && *between == size;
    });
  }

  std::vector<ShapeGuard>* const guards_;
  absl::flat_hash_set<std::string> seen_;
};

}  // namespace

absl::StatusOr<ResultTypes> InferNode(const Graph& graph, const Node& node, int32_t node_index,
                                      std::vector<ShapeGuard>* guards, RunTimeBounds* bounds, int64_t* parts) {
  int64_t own_parts = 0;
  RunTimeBounds forgotten;
  return InferCounted(graph, node, node_index, guards, bounds == nullptr ? &forgotten : bounds,
                      parts == nullptr ? &own_parts : parts);
}

absl::StatusOr<std::vector<ShapeGuard>> InferTypes(Graph* graph) {
  ASSIGN_OR_RETURN(const absl::flat_hash_set<std::string> bound, BoundSymbols(*graph));
  for (const GraphInput& input : graph->inputs()) {
    RETURN_IF_ERROR(WithNode(CheckType(input.type, bound), input.name, "input"));
  }
  std::vector<ShapeGuard> guards;
  RunTimeBounds bounds;
  SizeGuards size_guards(&guards);
  int64_t parts = 0;
  for (size_t i = 0; i < graph->nodes().size(); ++i) {
    RETURN_IF_ERROR(CheckStopped());
    const Node& node = graph->nodes()[i];
    const size_t earlier_guards = guards.size();
    absl::StatusOr<ResultTypes> types = InferCounted(*graph, node, static_cast<int32_t>(i), &guards, &bounds, &parts);
    if (!types.ok()) return WithNode(types.status(), WrittenName(node.name), node.op->name);
    for (size_t g = earlier_guards; g < guards.size(); ++g) {  // a size of an attribute may stand in no type
      RETURN_IF_ERROR(WithNode(CheckSymbols(guards[g].lhs, bound), WrittenName(node.name), node.op->name));
      RETURN_IF_ERROR(WithNode(CheckSymbols(guards[g].rhs, bound), WrittenName(node.name), node.op->name));
    }
    size_guards.Add(*graph, node, static_cast<int32_t>(i), earlier_guards, *types);
    for (size_t r = 0; r < types->size(); ++r) {
      RETURN_IF_ERROR(WithNode(CheckType((*types)[r], bound), WrittenName(node.name), node.op->name));
      graph->set_type({node.first_result.index + static_cast<int32_t>(r)}, std::move((*types)[r]));
    }
  }
  return guards;
}

absl::Status VerifyTypes(const Graph& graph) {
  std::vector<ShapeGuard> guards;
  RunTimeBounds bounds;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    absl::StatusOr<ResultTypes> types = InferNode(graph, node, static_cast<int32_t>(i), &guards, &bounds);
    if (!types.ok()) {
      return WithNode(
          Refuse(Refusal::kInternal, absl::StrCat("a pass made an invalid node: ", types.status().message())),
          WrittenName(node.name), node.op->name);
    }
    for (size_t r = 0; r < types->size(); ++r) {
      const TensorType& recorded = graph.type({node.first_result.index + static_cast<int32_t>(r)});
      if (!((*types)[r] == recorded)) {
        return WithNode(Refuse(Refusal::kInternal, absl::StrCat("a pass changed a type: ", ToString(recorded), " to ",
                                                                ToString((*types)[r]))),
                        WrittenName(node.name), node.op->name);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord
