#include "tests/testlib/property/grow_patterns.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/testlib/property/growth_rules.h"
#include "tests/testlib/property/rounding.h"

namespace tensord::property {
namespace {

using Value = std::optional<ValueId>;

// A value of some rank, if there is one.
ValueId Wide(GrowingGraph& graph, DType dtype, bool exact) {
  ValueId x = graph.Any(dtype, exact);
  for (int tries = 0; tries < 4 && graph.rank(x) == 0; ++tries) x = graph.Any(dtype, exact);
  return x;
}

// x, whose axes are `axes` of `like`, over the shape of `like`.
Value Spread(GrowingGraph& graph, ValueId x, const Ints& axes, ValueId like) {
  std::vector<DimExpr> shape;
  for (int64_t i = 0; i < graph.rank(like); ++i) {
    const Dim& dim = graph.Type(like).shape[static_cast<size_t>(i)];
    const bool by_axis = dim.extent != Extent::kExact || graph.OneIn(3);
    shape.push_back(by_axis ? DimExpr::OperandAxis(1, i) : dim.size);
  }
  return graph.Append(CoreOp::kBroadcastInDim,
                      AttrsOf(CoreOp::kBroadcastInDim).Set("shape", shape).Set("broadcast_dimensions", axes),
                      {x, like});
}

// Spreads the result of a reduction over `axes` over the shape of `like` again; sometimes by way of axes of size 1.
Value SpreadBack(GrowingGraph& graph, Value reduced, const Ints& axes, ValueId like) {
  if (!reduced.has_value()) return std::nullopt;
  Ints kept, all;
  std::vector<DimExpr> with_ones;
  for (int64_t i = 0; i < graph.rank(like); ++i) {
    all.push_back(i);
    const bool is_reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    with_ones.push_back(is_reduced ? DimExpr(1) : DimExpr::OperandAxis(0, static_cast<int64_t>(kept.size())));
    if (!is_reduced) kept.push_back(i);
  }
  if (graph.OneIn(2)) {
    const Value wide = graph.Append(CoreOp::kReshape, AttrsOf(CoreOp::kReshape).Set("shape", with_ones), {*reduced});
    if (wide.has_value()) return Spread(graph, *wide, all, like);
  }
  return Spread(graph, *reduced, kept, like);
}

Value Unary(GrowingGraph& graph, CoreOp op, Value x) {
  if (!x.has_value()) return std::nullopt;
  return graph.Append(op, AttrsOf(op), {*x});
}

Value Binary(GrowingGraph& graph, CoreOp op, Value x, Value y) {
  if (!x.has_value() || !y.has_value()) return std::nullopt;
  return graph.Append(op, AttrsOf(op), {*x, *y});
}

Value Reduced(GrowingGraph& graph, ReduceKind kind, Value x, const Ints& axes) {
  if (!x.has_value()) return std::nullopt;
  return graph.Append(CoreOp::kReduce,
                      AttrsOf(CoreOp::kReduce).Set("kind", static_cast<int64_t>(kind)).Set("dimensions", axes), {*x});
}

// A scalar, or a part of the axes, spread over the shape of x.
Value SpreadOperand(GrowingGraph& graph, ValueId x) {
  const DType dtype = graph.Type(x).dtype;
  if (graph.OneIn(2)) return Spread(graph, graph.Scalar(dtype), {}, x);
  const Ints axes = graph.SomeAxes(graph.rank(x), 2);
  SymbolicShape shape;
  for (int64_t axis : axes) shape.push_back(graph.Type(x).shape[static_cast<size_t>(axis)]);
  const Value small = graph.WithShape(dtype, shape, /*exact=*/false);
  return small.has_value() ? Spread(graph, *small, axes, x) : std::nullopt;
}

// One elementwise op on x, of the same shape, of whatever dtype; x itself where none fits.
ValueId Next(GrowingGraph& graph, ValueId x) {
  const DType dtype = graph.Type(x).dtype;
  if (graph.OneIn(8)) {
    const DType to = graph.AnyOf(kAnyDType);
    return graph.Append(CoreOp::kConvert, AttrsOf(CoreOp::kConvert).Set("dtype", to), {x}).value_or(x);
  }
  const auto op = static_cast<CoreOp>(graph.Below(kNumCoreOps));
  if (!Def(op).dtypes.Contains(dtype)) return x;
  if (Def(op).op_class == OpClass::kUnary) return Unary(graph, op, x).value_or(x);
  if (Def(op).op_class != OpClass::kBinary) return x;
  const Value other = graph.OneIn(2) ? SpreadOperand(graph, x) : graph.Alike(x, NeedsExactOperand(op, 1, dtype, dtype));
  return (graph.OneIn(2) ? Binary(graph, op, x, other) : Binary(graph, op, other, x)).value_or(x);
}

void GrowChain(GrowingGraph& graph) {
  ValueId x = Wide(graph, graph.AnyOf(kAnyDType), graph.OneIn(2));
  std::vector<ValueId> along = {x};
  for (int64_t length = graph.Between(4, 40); length > 0; --length) {
    x = Next(graph, x);
    along.push_back(x);
    // A second result, or an operand that is used again.
    if (graph.OneIn(10)) x = along[static_cast<size_t>(graph.Below(static_cast<int64_t>(along.size())))];
  }
}

// Softmax and log-softmax; e^x without the maximum where x is exact.
void GrowSoftmax(GrowingGraph& graph) {
  const ValueId x = Wide(graph, graph.AnyOf(kFloats), /*exact=*/graph.OneIn(2));
  const Ints axes = graph.OneIn(4) ? graph.SomeAxes(graph.rank(x), 2) : Ints{std::max<int64_t>(graph.rank(x) - 1, 0)};
  if (graph.rank(x) == 0) return;
  const Value most = SpreadBack(graph, Reduced(graph, ReduceKind::kMax, x, axes), axes, x);
  const Value shifted = Binary(graph, CoreOp::kSubtract, x, most);
  const Value power = Unary(graph, CoreOp::kExp, shifted);
  const Value sum = Reduced(graph, ReduceKind::kSum, power, axes);
  if (graph.OneIn(3)) {
    Binary(graph, CoreOp::kSubtract, shifted, SpreadBack(graph, Unary(graph, CoreOp::kLog, sum), axes, x));
  } else {
    Binary(graph, CoreOp::kDivide, power, SpreadBack(graph, sum, axes, x));
  }
}

// Mean, variance, and what is normalised by them, with scale and shift.
void GrowNormalization(GrowingGraph& graph) {
  const ValueId x = Wide(graph, graph.AnyOf(kFloats), /*exact=*/false);
  if (graph.rank(x) == 0) return;
  const Ints axes = graph.OneIn(4) ? graph.SomeAxes(graph.rank(x), 2) : Ints{graph.Below(graph.rank(x))};
  const auto mean_of = [&](Value y) {
    const Value sum = Reduced(graph, ReduceKind::kSum, y, axes);
    if (!sum.has_value() || graph.OneIn(3)) return sum;
    const Value count = Spread(graph, graph.Scalar(graph.Type(x).dtype), {}, *sum);
    return Binary(graph, graph.OneIn(2) ? CoreOp::kDivide : CoreOp::kMultiply, sum, count);
  };
  const Value centred = Binary(graph, CoreOp::kSubtract, x, SpreadBack(graph, mean_of(x), axes, x));
  Value variance = mean_of(Binary(graph, CoreOp::kMultiply, centred, centred));
  if (graph.OneIn(4)) return;
  if (variance.has_value() && graph.OneIn(2)) {
    variance = Binary(graph, CoreOp::kAdd, variance, Spread(graph, graph.Scalar(graph.Type(x).dtype), {}, *variance));
  }
  const Value scale = Unary(graph, graph.OneIn(3) ? CoreOp::kSqrt : CoreOp::kRsqrt, variance);
  Value y = Binary(graph, CoreOp::kMultiply, centred, SpreadBack(graph, scale, axes, x));
  if (y.has_value()) y = Binary(graph, CoreOp::kMultiply, y, SpreadOperand(graph, *y));
  if (y.has_value()) Binary(graph, CoreOp::kAdd, y, SpreadOperand(graph, *y));
}

// Any reduction of a chain, and the chain again with what it left, twice.
void GrowStages(GrowingGraph& graph) {
  const DType dtype = graph.AnyOf(kAnyDType);
  ValueId x = Wide(graph, dtype, /*exact=*/true);
  for (int stages = 0; stages < 2; ++stages) {
    for (int64_t length = graph.Below(4); length > 0; --length) x = Next(graph, x);
    const Ints axes = graph.SomeAxes(graph.rank(x), 2);
    const int64_t kinds = graph.Type(x).dtype == DType::kBool ? 6 : 4;
    const Value left = Reduced(graph, static_cast<ReduceKind>(graph.Between(1, kinds)), x, axes);
    const Value back = SpreadBack(graph, left, axes, x);
    const auto op = static_cast<CoreOp>(graph.Below(kNumCoreOps));
    if (Def(op).op_class == OpClass::kBinary) x = Binary(graph, op, x, back).value_or(x);
  }
  for (int64_t length = graph.Below(4); length > 0; --length) x = Next(graph, x);
}

// Cheap ops on what is repeated, and reductions of it along an axis each, of which one may come back.
void GrowCrossed(GrowingGraph& graph) {
  ValueId x = Wide(graph, graph.AnyOf(kAnyDType), /*exact=*/true);
  const int64_t rank = graph.rank(x), kinds = graph.Type(x).dtype == DType::kBool ? 6 : 4;
  if (rank == 0) return;
  constexpr CoreOp kOps[] = {CoreOp::kAdd, CoreOp::kMultiply, CoreOp::kSubtract, CoreOp::kMaximum, CoreOp::kXor};
  const auto compute = [&] {
    x = Binary(graph, kOps[graph.Below(std::size(kOps))], x, SpreadOperand(graph, x)).value_or(x);
  };
  for (int64_t length = graph.Between(1, 4); length > 0; --length) compute();
  for (int64_t count = graph.Between(2, 4); count > 0; --count) {
    const Ints axes = {graph.Below(rank)};
    const Value left = Reduced(graph, static_cast<ReduceKind>(graph.Between(1, kinds)), x, axes);
    if (!graph.OneIn(3)) continue;
    x = Binary(graph, kOps[graph.Below(std::size(kOps))], x, SpreadBack(graph, left, axes, x)).value_or(x);
    if (graph.OneIn(2)) compute();
  }
}

// A triangle, a band or a stripe of a value, by comparing indices.
void GrowMask(GrowingGraph& graph) {
  const ValueId x = Wide(graph, graph.AnyOf(kAnyDType), /*exact=*/false);
  const SymbolicShape& shape = graph.Type(x).shape;
  const auto has_name = [](const Dim& dim) { return dim.extent == Extent::kExact; };
  if (shape.empty() || !std::all_of(shape.begin(), shape.end(), has_name)) return;
  const TensorType index = {.dtype = graph.AnyOf(kIntegers), .shape = shape};
  const auto iota = [&] {
    return graph.Append(CoreOp::kIota,
                        AttrsOf(CoreOp::kIota).Set("type", index).Set("dimension", graph.Below(graph.rank(x))), {});
  };
  const Value rows = iota();
  if (!rows.has_value()) return;
  const Value columns = graph.OneIn(2) ? iota() : SpreadOperand(graph, *rows);
  if (!columns.has_value()) return;
  const Value mask = graph.Append(CoreOp::kCompare, AttrsOf(CoreOp::kCompare).Set("direction", graph.Between(1, 6)),
                                  {*rows, *columns});
  const Value other = graph.OneIn(2) ? SpreadOperand(graph, x) : graph.Alike(x, /*exact=*/false);
  if (!mask.has_value() || !other.has_value()) return;
  const Value y = graph.Append(CoreOp::kSelect, AttrsOf(CoreOp::kSelect), {*mask, x, *other});
  if (y.has_value() && graph.OneIn(2)) Next(graph, *y);
}

Value Transposed(GrowingGraph& graph, ValueId x) {
  return graph.Append(CoreOp::kTranspose,
                      AttrsOf(CoreOp::kTranspose).Set("permutation", graph.Permutation(graph.rank(x))), {x});
}

// Contractions of what was conjugated, negated and transposed, transposed again and contracted again.
void GrowContractions(GrowingGraph& graph) {
  const DType dtype = graph.AnyOf(graph.OneIn(2) ? kComplexes : Def(CoreOp::kDotGeneral).dtypes);
  const auto prepare = [&](ValueId x) {
    for (int64_t steps = graph.Below(4); steps > 0; --steps) {
      const Value next =
          graph.OneIn(2) ? Transposed(graph, x) : Unary(graph, graph.OneIn(3) ? CoreOp::kNegate : CoreOp::kConj, x);
      x = next.value_or(x);
    }
    return x;
  };
  for (int64_t count = graph.Between(1, 3); count > 0; --count) {
    prepare(Wide(graph, dtype, /*exact=*/false));
    prepare(Wide(graph, dtype, /*exact=*/false));
    GrowDotGeneral(graph, CoreOp::kDotGeneral, dtype);
    prepare(graph.Any(dtype, /*exact=*/false));
  }
}

// Ops on constants, and what they give used with what is none.
void GrowConstants(GrowingGraph& graph) {
  const DType dtype = graph.AnyOf(kAnyDType);
  const ValueId x = Wide(graph, dtype, /*exact=*/false);
  const Value first = graph.OneIn(2) ? SpreadOperand(graph, x) : graph.WithShape(dtype, graph.Type(x).shape, true);
  if (!first.has_value()) return;
  ValueId constant = *first;
  for (int64_t length = graph.Between(1, 5); length > 0; --length) constant = Next(graph, constant);
  constexpr CoreOp kOps[] = {CoreOp::kAdd, CoreOp::kMultiply, CoreOp::kSubtract, CoreOp::kDivide, CoreOp::kMaximum};
  const CoreOp op = kOps[graph.Below(std::size(kOps))];
  if (graph.Type(constant) == graph.Type(x)) Binary(graph, op, x, constant);
}

// Some of the last nodes once more, and both of what they give together.
void GrowDuplicates(GrowingGraph& graph) {
  const int64_t count = static_cast<int64_t>(graph.graph().nodes().size());
  if (count == 0) return;
  ValueId original, copy;
  const int64_t begin = std::max<int64_t>(0, count - graph.Between(1, 6));
  std::vector<std::pair<ValueId, ValueId>> copies;
  for (int64_t i = begin; i < count; ++i) {
    const Node node = graph.graph().nodes()[static_cast<size_t>(i)];
    std::vector<ValueId> operands(node.operands.begin(), node.operands.end());
    for (ValueId& operand : operands) {
      for (const auto& [from, to] : copies) {
        if (operand == from) operand = to;
      }
    }
    const Value again = graph.Append(static_cast<CoreOp>(node.op->index), node.attrs, operands);
    if (!again.has_value()) continue;
    copies.push_back({node.first_result, *again});
    original = node.first_result, copy = *again;
  }
  if (copies.empty()) return;
  const DType dtype = graph.Type(original).dtype;
  const CoreOp op = dtype == DType::kBool ? CoreOp::kXor : graph.OneIn(2) ? CoreOp::kAdd : CoreOp::kSubtract;
  Binary(graph, op, original, copy);
}

// Windows and transposes of a value, computed with where they stand.
void GrowViews(GrowingGraph& graph) {
  const DType dtype = graph.AnyOf(kAnyDType);
  ValueId x = Wide(graph, dtype, /*exact=*/false);
  for (int64_t steps = graph.Between(1, 3); steps > 0; --steps) {
    const auto values = graph.graph().num_values();
    switch (graph.Below(3)) {
      case 0:
        x = Transposed(graph, x).value_or(x);
        break;
      case 1:
        GrowSlice(graph, CoreOp::kSlice, dtype);
        break;
      default:
        GrowReverse(graph, CoreOp::kReverse, dtype);
    }
    if (graph.graph().num_values() > values) x = {graph.graph().num_values() - 1};
    for (int64_t length = graph.Below(4); length > 0; --length) x = Next(graph, x);
  }
}

// Equal windows of a value at equal distances, and now and then at others.
std::vector<ValueId> Windows(GrowingGraph& graph, ValueId x, int64_t axis) {
  Ints starts, limits;
  for (const Dim& dim : graph.Type(x).shape) {
    starts.push_back(0);
    limits.push_back(graph.LeastSize(dim));
  }
  const size_t at = static_cast<size_t>(axis);
  const int64_t count = graph.Between(2, 4), apart = graph.Between(1, 2), stride = graph.OneIn(3) ? 2 : 1;
  const int64_t length = (limits[at] - 1 - (count - 1) * apart) / stride + 1;
  if (length < 1 || limits[at] <= (count - 1) * apart) return {};
  Ints strides(starts.size(), 1);
  strides[at] = stride;
  std::vector<ValueId> windows;
  for (int64_t i = 0; i < count; ++i) {
    if (!graph.OneIn(30)) starts[at] = i * apart;
    limits[at] = starts[at] + (length - 1) * stride + 1;
    const Value window = graph.Append(
        CoreOp::kSlice,
        AttrsOf(CoreOp::kSlice).Set("start_indices", starts).Set("limit_indices", limits).Set("strides", strides), {x});
    if (window.has_value()) windows.push_back(*window);
  }
  return windows;
}

// A product of windows of a padded value that are copied side by side, along one axis or two.
void GrowConvolution(GrowingGraph& graph) {
  const DType dtype = graph.AnyOf(Def(CoreOp::kDotGeneral).dtypes);
  ValueId x = Wide(graph, dtype, /*exact=*/false);
  if (graph.rank(x) == 0) return;
  if (graph.OneIn(2)) {
    Attributes attrs = AttrsOf(CoreOp::kPad);
    for (absl::string_view edge : {"edge_padding_low", "edge_padding_high"}) {
      Ints amounts;
      for (int64_t i = 0; i < graph.rank(x); ++i) amounts.push_back(graph.OneIn(2) ? graph.Between(-1, 2) : 0);
      attrs.Set(edge, amounts);
    }
    const auto zero = std::make_shared<const Literal>(*Literal::Create({.dtype = dtype, .shape = {}}));
    const Value value =
        graph.OneIn(5) ? graph.Scalar(dtype)
                       : graph.Append(CoreOp::kConstant, AttrsOf(CoreOp::kConstant).Set("value", LiteralPtr(zero)), {});
    if (value.has_value()) x = graph.Append(CoreOp::kPad, std::move(attrs), {x, *value}).value_or(x);
  }
  const int64_t joined = graph.Below(graph.rank(x));
  for (int64_t steps = graph.Between(1, 2); steps > 0; --steps) {
    const std::vector<ValueId> windows = Windows(graph, x, graph.Below(graph.rank(x)));
    if (windows.empty()) break;
    x = graph.Append(CoreOp::kConcatenate, AttrsOf(CoreOp::kConcatenate).Set("dimension", joined), windows).value_or(x);
    if (graph.OneIn(4)) x = Transposed(graph, x).value_or(x);
  }
  SymbolicShape kernel = {graph.Type(x).shape[static_cast<size_t>(joined)]};
  if (graph.OneIn(2)) kernel.push_back(Dim{DimExpr(graph.Between(1, 5))});
  const Value y = graph.WithShape(dtype, kernel, /*exact=*/false);
  if (!y.has_value()) return;
  const bool swaps = graph.OneIn(2);
  const Value product = graph.Append(CoreOp::kDotGeneral,
                                     AttrsOf(CoreOp::kDotGeneral)
                                         .Set("lhs_contracting_dimensions", Ints{swaps ? 0 : joined})
                                         .Set("rhs_contracting_dimensions", Ints{swaps ? joined : 0}),
                                     {swaps ? *y : x, swaps ? x : *y});
  if (product.has_value() && graph.OneIn(2)) Transposed(graph, *product);
}

}  // namespace

void GrowPattern(GrowingGraph& graph) {
  constexpr void (*kPatterns[])(GrowingGraph&) = {
      &GrowChain,        &GrowChain,     &GrowSoftmax,    &GrowNormalization, &GrowStages,      &GrowStages, &GrowMask,
      &GrowContractions, &GrowConstants, &GrowDuplicates, &GrowViews,         &GrowConvolution, &GrowCrossed};
  kPatterns[graph.Below(std::size(kPatterns))](graph);
}

}  // namespace tensord::property
