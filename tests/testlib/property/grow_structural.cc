#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {
namespace {

constexpr int64_t kMostAxes = 8;

}  // namespace

void GrowConstant(GrowingGraph& graph, CoreOp op, DType dtype) {
  ConcreteType type{.dtype = dtype};
  for (int64_t rank = std::min(graph.Below(5), graph.Below(5)); rank > 0; --rank) {
    type.shape.push_back(graph.OneIn(12) ? 0 : graph.Between(1, 5));
  }
  graph.Append(op, AttrsOf(op).Set("value", graph.Constant(type)), {});
}

void GrowIota(GrowingGraph& graph, CoreOp op, DType dtype) {
  TensorType type{.dtype = dtype};
  for (int64_t rank = graph.Between(1, 4); rank > 0; --rank) type.shape.push_back(Dim(graph.Size()));
  graph.Append(op, AttrsOf(op).Set("type", type).Set("dimension", graph.Below(type.rank())), {});
}

void GrowTranspose(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  graph.Append(op, AttrsOf(op).Set("permutation", graph.Permutation(graph.rank(x))), {x});
}

void GrowReshape(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  std::vector<ValueId> operands = {x};
  // Sizes may be written as those of the operand itself, or of a shape source, where they are equal.
  const bool by_axis = graph.OneIn(3);
  const ValueId source = graph.Alike(x, /*exact=*/false);
  if (by_axis && graph.OneIn(2)) operands.push_back(source);
  const SymbolicShape from = graph.Type(x).shape;
  std::vector<DimExpr> shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (graph.OneIn(4)) shape.push_back(1);
    const DimExpr& size = from[i].size;
    const int64_t half = size.is_constant() && size.constant() % 2 == 0 ? size.constant() / 2 : 0;
    if (half > 0 && graph.OneIn(2)) {
      shape.push_back(2);
      shape.push_back(half);
    } else if (from[i].extent != Extent::kExact) {
      shape.push_back(DimExpr::OperandAxis(0, static_cast<int64_t>(i)));
    } else if (by_axis && graph.OneIn(2)) {
      shape.push_back(DimExpr::OperandAxis(static_cast<int64_t>(operands.size()) - 1, static_cast<int64_t>(i)));
    } else if (!size.is(1) || graph.OneIn(2)) {
      shape.push_back(size);
    }
  }
  for (int64_t merges = graph.Below(3); merges > 0 && shape.size() >= 2; --merges) {
    const size_t i = static_cast<size_t>(graph.Below(static_cast<int64_t>(shape.size()) - 1));
    const auto product = DimExpr::Multiply(shape[i], shape[i + 1]);
    if (!product.ok()) return;
    shape[i] = *product;
    shape.erase(shape.begin() + static_cast<int64_t>(i) + 1);
  }
  graph.Append(op, AttrsOf(op).Set("shape", shape).Set("order", graph.Below(3)), operands);
}

void GrowBroadcastInDim(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  const SymbolicShape from = graph.Type(x).shape;
  const int64_t rank = std::min<int64_t>(graph.rank(x) + graph.Below(3), std::max<int64_t>(kMostAxes, graph.rank(x)));
  Ints axes = graph.Permutation(rank);
  axes.resize(from.size());
  std::vector<DimExpr> shape;
  for (int64_t i = 0; i < rank; ++i) shape.push_back(graph.Size());
  std::vector<ValueId> operands = {x};
  const ValueId source = graph.Any();  // there for its shape alone
  if (rank > 0 && graph.rank(source) > 0 && graph.OneIn(2)) {
    operands.push_back(source);
    DimExpr size = DimExpr::OperandAxis(1, graph.Below(graph.rank(source)));
    if (graph.OneIn(4)) size = DimExpr::Add(size, DimExpr(1)).value();
    shape[static_cast<size_t>(graph.Below(rank))] = size;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (from[i].size.is(1)) continue;
    DimExpr& size = shape[static_cast<size_t>(axes[i])];
    // A size that the run decides has no name.
    const bool by_axis = graph.OneIn(4) || from[i].extent != Extent::kExact;
    size = by_axis ? DimExpr::OperandAxis(0, static_cast<int64_t>(i)) : from[i].size;
  }
  graph.Append(op, AttrsOf(op).Set("shape", shape).Set("broadcast_dimensions", axes), operands);
}

}  // namespace tensord::property
