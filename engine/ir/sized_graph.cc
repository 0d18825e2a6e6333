#include "engine/ir/sized_graph.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

absl::StatusOr<DimExpr> Sized(const DimExpr& size, const SizeBinding& sizes) {
  if (size.is_constant()) return size;
  return size.Substitute([&](const DimAtom& atom) -> absl::StatusOr<DimExpr> {
    if (atom.kind == DimAtom::Kind::kOperandAxis) return DimExpr::OperandAxis(atom.operand, atom.axis);
    DimExpr symbol = DimExpr::Symbol(atom.symbol);
    if (IsRunTimeSymbol(atom.symbol)) return symbol;
    ASSIGN_OR_RETURN(const int64_t value, sizes.Evaluate(symbol));
    return DimExpr(value);
  });
}

absl::StatusOr<TensorType> Sized(const TensorType& type, const SizeBinding& sizes) {
  TensorType sized = {.dtype = type.dtype, .shape = {}};
  for (const Dim& dim : type.shape) {
    ASSIGN_OR_RETURN(DimExpr size, Sized(dim.size, sizes));
    sized.shape.emplace_back(std::move(size));
  }
  return sized;
}

absl::Status SizeAttributes(const SizeBinding& sizes, Attributes* attrs) {
  for (size_t i = 0; i < attrs->schema().size(); ++i) {
    const AttrValue& value = attrs->at(i);
    if (const auto* dims = std::get_if<std::vector<DimExpr>>(&value); dims != nullptr) {
      std::vector<DimExpr> sized;
      for (const DimExpr& dim : *dims) {
        ASSIGN_OR_RETURN(sized.emplace_back(), Sized(dim, sizes));
      }
      attrs->Set(i, std::move(sized));
    } else if (const auto* type = std::get_if<SharedType>(&value); type != nullptr) {
      ASSIGN_OR_RETURN(TensorType sized, Sized(**type, sizes));
      attrs->Set(i, SharedType(std::move(sized)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> WithSizes(const Graph& graph, const SizeBinding& sizes) {
  Graph sized = Graph::EmptyLike(graph);
  for (const GraphInput& input : graph.inputs()) {
    ASSIGN_OR_RETURN(TensorType type, Sized(input.type, sizes));
    sized.AddInput(input.name, std::move(type));
  }
  for (Node node : graph.nodes()) {
    RETURN_IF_ERROR(SizeAttributes(sizes, &node.attrs));
    sized.AddNode(std::move(node));
  }
  for (const GraphOutput& output : graph.outputs()) sized.AddOutput(output.name, output.value);
  return sized;
}

}  // namespace tensord
