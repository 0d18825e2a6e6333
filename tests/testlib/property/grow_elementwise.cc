#include "tests/testlib/property/growth_rules.h"
#include "tests/testlib/property/rounding.h"

namespace tensord::property {
namespace {

// An operand for the op's first place.
ValueId FirstOperand(GrowingGraph& graph, CoreOp op, DType dtype) {
  return graph.Any(dtype, NeedsExactOperand(op, 0, dtype, dtype));
}

}  // namespace

void GrowUnary(GrowingGraph& graph, CoreOp op, DType dtype) {
  graph.Append(op, Attributes(Def(op).attrs), {FirstOperand(graph, op, dtype)});
}

void GrowBinary(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = FirstOperand(graph, op, dtype);
  const ValueId y = graph.Alike(x, NeedsExactOperand(op, 1, dtype, dtype));
  graph.Append(op, Attributes(Def(op).attrs), {x, y});
}

void GrowCompare(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/true);
  const int64_t direction = kComplexes.Contains(dtype) ? graph.Between(1, 2) : graph.Between(1, 6);
  graph.Append(op, AttrsOf(op).Set("direction", direction), {x, graph.Alike(x, /*exact=*/true)});
}

void GrowSelect(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  const auto pred =
      graph.WithShape(DType::kBool, graph.OneIn(4) ? SymbolicShape{} : graph.Type(x).shape, /*exact=*/false);
  if (!pred.has_value()) return;
  graph.Append(op, AttrsOf(op), {*pred, x, graph.Alike(x, /*exact=*/false)});
}

void GrowClamp(GrowingGraph& graph, CoreOp op, DType dtype) {
  const bool exact = NeedsExactOperand(op, 0, dtype, dtype);
  const ValueId x = graph.Any(dtype, exact);
  const auto bound = [&] { return graph.OneIn(2) ? graph.WithShape(dtype, {}, exact) : graph.Alike(x, exact); };
  const auto low = bound(), high = bound();
  if (low.has_value() && high.has_value()) graph.Append(op, AttrsOf(op), {*low, x, *high});
}

void GrowConvert(GrowingGraph& graph, CoreOp op, DType dtype) {
  const DType to = graph.AnyOf(kAnyDType);
  const ValueId x = graph.Any(dtype, NeedsExactOperand(op, 0, dtype, to));
  graph.Append(op, AttrsOf(op).Set("dtype", to), {x});
}

}  // namespace tensord::property
