#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

using Builder = StaticGraphBuilder;

// The quotient rounded toward zero, and what it leaves of x.
struct Division {
  ValueId quotient, rest;
};

Division Divide(Builder* g, ValueId x, ValueId divisor) {
  const ValueId quotient = g->Binary(CoreOp::kDivide, x, divisor);
  return {quotient, g->Binary(CoreOp::kSubtract, x, g->Binary(CoreOp::kMultiply, quotient, divisor))};
}

}  // namespace

Graph FirstMaximumGraph(DType dtype, int64_t elements) {
  Builder g("first maximum");
  const ValueId x = g.Input("x", dtype, {elements});
  const ValueId best = g.ReduceAndRepeat(ReduceKind::kMax, x, {0});
  const ValueId found =
      g.Binary(CoreOp::kOr, g.Compare(CompareDirection::kEq, x, best), g.Compare(CompareDirection::kNe, x, x));
  const ValueId end = g.Broadcast(g.Scalar(DType::kI64, static_cast<double>(elements)), {elements}, {});
  const ValueId index = g.Select(found, g.Iota(DType::kI64, {elements}, 0), end);
  g.Output("y", g.Reduce(ReduceKind::kMin, index, {0}));
  return g.Take();
}

Graph FloorQuotientGraph(DType dtype, int64_t divisor, int64_t elements) {
  Builder g("floor quotient");
  const ValueId x = g.Input("x", dtype, {elements});
  const auto repeated = [&](int64_t value) {
    return g.Broadcast(g.Scalar(dtype, static_cast<double>(value)), {elements}, {});
  };
  const auto [quotient, rest] = Divide(&g, x, repeated(divisor));
  const ValueId below = g.Compare(CompareDirection::kLt, rest, repeated(0));
  g.Output("y", g.Select(below, g.Binary(CoreOp::kSubtract, quotient, repeated(1)), quotient));
  return g.Take();
}

Graph FloorRemainderGraph(DType dtype, int64_t divisor, int64_t elements) {
  Builder g("floor remainder");
  const ValueId x = g.Input("x", dtype, {elements});
  const auto repeated = [&](int64_t value) {
    return g.Broadcast(g.Scalar(dtype, static_cast<double>(value)), {elements}, {});
  };
  const ValueId by = repeated(divisor);
  const ValueId rest = g.Binary(CoreOp::kRemainder, x, by);
  const ValueId below = g.Compare(CompareDirection::kLt, rest, repeated(0));
  g.Output("y", g.Select(below, g.Binary(CoreOp::kAdd, rest, by), rest));
  return g.Take();
}

Graph NormGraph(DType dtype, int64_t elements) {
  Builder g("norm");
  const ValueId size = g.Unary(CoreOp::kAbs, g.Input("x", dtype, {elements}));
  const ValueId squares = g.Binary(CoreOp::kMultiply, size, size);
  g.Output("y", g.Unary(CoreOp::kSqrt, g.Reduce(ReduceKind::kSum, squares, {0})));
  return g.Take();
}

}  // namespace tensord
