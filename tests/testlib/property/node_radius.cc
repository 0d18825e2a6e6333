#include "tests/testlib/property/node_radius.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/property/element_radius.h"
#include "tests/testlib/property/rounding.h"

namespace tensord::property {
namespace {

using Operands = absl::Span<const BoundedLiteral* const>;
using Radii = std::vector<double>;

std::vector<Complex128> NumbersOf(const Literal& literal) {
  std::vector<Complex128> numbers;
  numbers.reserve(static_cast<size_t>(literal.num_elements()));
  VisitDType(literal.dtype(), [&]<typename T>(TypeTag<T>) {
    for (const T& x : literal.values<T>()) numbers.push_back(scalar::ConvertElement<Complex128>(x));
  });
  return numbers;
}

// The numbers of a literal with their radii; those near infinity with none that is known.
std::vector<Uncertain> UncertainOf(const BoundedLiteral& bounded) {
  std::vector<Uncertain> all;
  const DType dtype = bounded.value.dtype();
  for (const Complex128& z : NumbersOf(bounded.value)) {
    Uncertain x = {z, bounded.radius_at(all.size())};
    const double size = std::max(std::abs(z.real()), std::abs(z.imag()));
    if (x.radius > 0 && kInexact.Contains(dtype) && !(size + x.radius < LargestOf(dtype))) x.radius = kUnknown;
    all.push_back(x);
  }
  return all;
}

Literal Doubles(const Shape& shape, const std::vector<Uncertain>& elements,
                const std::function<double(const Uncertain&)>& number) {
  Literal literal = Literal::Create({DType::kF64, shape}).value();
  const auto out = literal.mutable_values<double>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = number(elements[i]);
  return literal;
}

// The node's op on doubles that stand for its operands, element by element of the result.
absl::StatusOr<Radii> OnDoubles(const Node& node, const Attributes& attrs, const std::vector<const Literal*>& operands,
                                const Shape& shape) {
  ASSIGN_OR_RETURN(const Literal result, EvaluateNode(*node.op, attrs, operands, {DType::kF64, shape}));
  const auto values = result.values<double>();
  return Radii(values.begin(), values.end());
}

Radii Elementwise(const Node& node, CoreOp op, Operands operands, const Literal& result) {
  std::vector<std::vector<Uncertain>> inputs;
  for (const BoundedLiteral* operand : operands) inputs.push_back(UncertainOf(*operand));
  const auto at = [&](size_t operand, size_t i) { return inputs[operand][inputs[operand].size() == 1 ? 0 : i]; };
  const std::vector<Complex128> results = NumbersOf(result);
  const DType dtype = operands[0]->value.dtype();
  Radii radii(results.size());
  for (size_t i = 0; i < radii.size(); ++i) {
    const Complex128 y = results[i];
    bool exact = true;
    for (size_t k = 0; k < inputs.size(); ++k) exact = exact && at(k, i).radius == 0;
    if (exact && IsExactOp(op, node.attrs, dtype, result.dtype())) continue;
    if (op == CoreOp::kCompare) {
      radii[i] = CompareRadius(at(0, i), at(1, i));
    } else if (op == CoreOp::kClamp) {
      radii[i] = ClampRadius(dtype, at(0, i), at(1, i), at(2, i));
    } else if (op == CoreOp::kConvert) {
      radii[i] = ConvertRadius(dtype, result.dtype(), at(0, i), y);
    } else if (node.op->op_class == OpClass::kUnary) {
      radii[i] = UnaryRadius(op, dtype, at(0, i), y);
    } else {
      radii[i] = BinaryRadius(op, dtype, at(0, i), at(1, i), y);
    }
  }
  return radii;
}

// Ops that only move elements of their operands: the radii move with them. `moved` are the operands whose elements
// move, and `deciding` those that decide their places: nothing is known if these are unknown. Only the shape of other
// operands counts.
absl::StatusOr<Radii> Moved(const Node& node, Operands operands, const std::vector<size_t>& moved,
                            const std::vector<size_t>& deciding, const Literal& result) {
  std::vector<Literal> radii;
  std::vector<const Literal*> arguments;
  radii.reserve(operands.size());
  bool deciding_unknown = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (std::find(moved.begin(), moved.end(), i) == moved.end()) {
      const bool decides = std::find(deciding.begin(), deciding.end(), i) != deciding.end();
      deciding_unknown = deciding_unknown || (decides && !operands[i]->radius.empty());
      arguments.push_back(&operands[i]->value);
      continue;
    }
    radii.push_back(
        Doubles(operands[i]->value.shape(), UncertainOf(*operands[i]), [](const Uncertain& x) { return x.radius; }));
    arguments.push_back(&radii.back());
  }
  if (deciding_unknown) return Radii(static_cast<size_t>(result.num_elements()), kUnknown);
  return OnDoubles(node, node.attrs, arguments, result.shape());
}

// Sums of terms in any order, or products of factors, taken in a precision of `unit`.
struct Accumulation {
  double unit;     // of the accumulator: half the spacing at 1
  double largest;  // that the accumulator holds
  double whole;    // whole numbers below are exact in it
  double least;    // positive number of it
  DType dtype;     // of the result
};

Accumulation AccumulationOf(DType dtype) {
  const bool wide = dtype == DType::kF64 || dtype == DType::kC128;
  return {.unit = wide ? 0x1p-53 : 0x1p-24,
          .largest = std::min(LargestOf(dtype), LargestOf(wide ? DType::kF64 : DType::kF32)),
          .whole = wide ? 0x1p53 : 0x1p24,
          .least = wide ? 0x1p-1074 : 0x1p-149,
          .dtype = dtype};
}

bool AllWhole(const std::vector<Uncertain>& elements) {
  return std::all_of(elements.begin(), elements.end(), [](const Uncertain& x) {
    return x.radius == 0 && x.value.real() == std::trunc(x.value.real()) &&
           x.value.imag() == std::trunc(x.value.imag()) && std::isfinite(x.value.real()) &&
           std::isfinite(x.value.imag());
  });
}

double FinitePart(double x) { return std::isfinite(x) ? std::abs(x) : 0; }
double FiniteSize(const Uncertain& x) { return FinitePart(x.value.real()) + FinitePart(x.value.imag()); }

// The radius of a sum of `terms` terms whose magnitudes add up to `magnitude`, and whose radii move it by `moved`. The
// sign of a zero is open where every term is zero: it is that of the number that the sum began with.
double SumRadius(const Accumulation& a, double terms, double magnitude, double moved, bool whole, Complex128 y) {
  if (std::isnan(moved) || std::isnan(magnitude) || !(magnitude < a.largest / 4)) return kUnknown;
  const bool complex = kComplexes.Contains(a.dtype);
  if (moved == 0 && !complex && !std::isfinite(y.real())) return 0;  // the non-finite terms decide, in any order
  const bool signs_are_open = magnitude == 0 || (complex && (y.real() == 0 || y.imag() == 0));
  if (whole && magnitude < a.whole) return signs_are_open ? std::numeric_limits<double>::denorm_min() : 0;
  const double rounded = 2.02 * (terms + 2) * a.unit * magnitude;
  const double size = std::min(magnitude, LargestOf(a.dtype)) + moved + rounded;
  return (moved + rounded + SpacingAt(a.dtype, size)) * (1 + 1e-9);
}

absl::StatusOr<Radii> Sums(const Node& node, const BoundedLiteral& operand, const Literal& result) {
  const std::vector<Uncertain> x = UncertainOf(operand);
  const Accumulation a = AccumulationOf(result.dtype());
  const double terms = static_cast<double>(x.size()) / std::max<double>(1, static_cast<double>(result.num_elements()));
  const Literal sizes = Doubles(operand.value.shape(), x, [](const Uncertain& u) { return FiniteSize(u) + u.radius; });
  const Literal radii = Doubles(operand.value.shape(), x, [](const Uncertain& u) { return u.radius; });
  ASSIGN_OR_RETURN(const Radii magnitude, OnDoubles(node, node.attrs, {&sizes}, result.shape()));
  ASSIGN_OR_RETURN(const Radii moved, OnDoubles(node, node.attrs, {&radii}, result.shape()));
  const std::vector<Complex128> y = NumbersOf(result);
  const bool whole = AllWhole(x);
  Radii out(y.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = SumRadius(a, terms, magnitude[i], moved[i], whole, y[i]);
  return out;
}

// Products in any order: unknown where one of them could leave the range of normal numbers on the way.
absl::StatusOr<Radii> Products(const Node& node, const BoundedLiteral& operand, const Literal& result) {
  const std::vector<Uncertain> x = UncertainOf(operand);
  const Accumulation a = AccumulationOf(result.dtype());
  const bool complex = kComplexes.Contains(result.dtype());
  const double factors =
      static_cast<double>(x.size()) / std::max<double>(1, static_cast<double>(result.num_elements()));
  const auto finite_modulus = [](const Uncertain& u) {
    return std::hypot(FinitePart(u.value.real()), FinitePart(u.value.imag()));
  };
  const auto reach = [](const Uncertain& u) { return u.radius * std::sqrt(2.0); };
  const auto fold = [&](const std::function<double(const Uncertain&)>& number) -> absl::StatusOr<Radii> {
    const Literal literal = Doubles(operand.value.shape(), x, number);
    return OnDoubles(node, node.attrs, {&literal}, result.shape());
  };
  ASSIGN_OR_RETURN(const Radii with, fold([&](const Uncertain& u) { return finite_modulus(u) + reach(u); }));
  ASSIGN_OR_RETURN(const Radii without, fold(finite_modulus));
  ASSIGN_OR_RETURN(const Radii large,
                   fold([&](const Uncertain& u) { return std::max(1.0, finite_modulus(u) + reach(u)); }));
  ASSIGN_OR_RETURN(const Radii small, fold([&](const Uncertain& u) {
                     const double least = finite_modulus(u) - reach(u);
                     return finite_modulus(u) == 0 && u.radius == 0 ? 1 : std::clamp(least, 0.0, 1.0);
                   }));
  const std::vector<Complex128> y = NumbersOf(result);
  const bool whole = AllWhole(x);
  const double least = a.unit == 0x1p-53 ? 0x1p-1000 : 0x1p-120;
  Radii out(y.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const bool finite = std::isfinite(y[i].real()) && std::isfinite(y[i].imag());
    const double accumulated = a.unit == 0x1p-53 ? LargestOf(DType::kF64) : LargestOf(DType::kF32);
    if (!(large[i] < accumulated / 4) || !(small[i] > least) || (complex && !finite)) {
      out[i] = kUnknown;
    } else if (whole && large[i] < a.whole) {
      const bool zero_part = complex && (y[i].real() == 0 || y[i].imag() == 0);
      out[i] = zero_part ? std::numeric_limits<double>::denorm_min() : 0;
    } else if (!finite && !complex && with[i] == without[i]) {
      out[i] = std::isnan(y[i].real()) ? 0 : SpacingAt(a.dtype, LargestOf(a.dtype));
    } else {
      const double moved = with[i] - without[i] + 1e-12 * with[i];
      const double rounded = 2.02 * (factors + 1) * (complex ? 4 : 1) * a.unit * with[i];
      const double size = std::min(with[i] + rounded, LargestOf(a.dtype));
      out[i] = (moved + rounded + SpacingAt(a.dtype, size)) * (1 + 1e-9);
    }
    if (std::isnan(out[i])) out[i] = kUnknown;
  }
  return out;
}

// MAX and MIN: change at most by as much as an element does. Complex numbers that tie come in any order.
absl::StatusOr<Radii> Extremes(const Node& node, const BoundedLiteral& operand, const Literal& result) {
  Attributes attrs = node.attrs;
  attrs.Set("kind", static_cast<int64_t>(ReduceKind::kMax));
  const bool ordered = !kComplexes.Contains(result.dtype());
  const Literal radii = Doubles(operand.value.shape(), UncertainOf(operand), [&](const Uncertain& x) {
    return x.radius > 0 && !kFloats.Contains(operand.value.dtype()) ? kUnknown : x.radius;
  });
  ASSIGN_OR_RETURN(Radii out, OnDoubles(node, attrs, {&radii}, result.shape()));
  const std::vector<Complex128> y = NumbersOf(result);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = std::max(out[i], 0.0);  // of no element: the identity
    if (ordered) continue;
    if (y[i].real() == 0 || y[i].imag() == 0) out[i] = std::max(out[i], std::numeric_limits<double>::denorm_min());
  }
  return out;
}

absl::StatusOr<Radii> Dot(const Node& node, Operands operands, const Literal& result) {
  const std::vector<Uncertain> l = UncertainOf(*operands[0]), r = UncertainOf(*operands[1]);
  if (!kInexact.Contains(result.dtype())) return Radii(static_cast<size_t>(result.num_elements()), kUnknown);
  Attributes attrs = node.attrs;
  attrs.Set("result_dtype", DType::kInvalid);
  const Shape &ls = operands[0]->value.shape(), &rs = operands[1]->value.shape();
  const auto size = [](const Uncertain& u) { return FiniteSize(u); };
  const auto reach = [](const Uncertain& u) { return FiniteSize(u) + 2 * u.radius; };
  const auto radius = [](const Uncertain& u) { return 2 * u.radius; };
  const Literal lsize = Doubles(ls, l, size), lradius = Doubles(ls, l, radius), lreach = Doubles(ls, l, reach),
                rradius = Doubles(rs, r, radius), rreach = Doubles(rs, r, reach);
  ASSIGN_OR_RETURN(const Radii magnitude, OnDoubles(node, attrs, {&lreach, &rreach}, result.shape()));
  ASSIGN_OR_RETURN(const Radii left, OnDoubles(node, attrs, {&lradius, &rreach}, result.shape()));
  ASSIGN_OR_RETURN(const Radii right, OnDoubles(node, attrs, {&lsize, &rradius}, result.shape()));
  double terms = 2;
  for (int64_t axis : attrs.Ints("lhs_contracting_dimensions")) {
    terms *= static_cast<double>(ls[static_cast<size_t>(axis)]);
  }
  const std::vector<Complex128> y = NumbersOf(result);
  const Accumulation a = AccumulationOf(result.dtype());
  const bool whole = AllWhole(l) && AllWhole(r);
  const double underflow = whole ? 0 : terms * a.least;  // every product may lose as much
  Radii out(y.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = SumRadius(a, terms, magnitude[i], left[i] + right[i], whole, y[i]);
    if (out[i] > 0) out[i] += underflow;
    if (kComplexes.Contains(a.dtype) && !(std::isfinite(y[i].real()) && std::isfinite(y[i].imag()))) out[i] = kUnknown;
  }
  return out;
}

// Updates are combined in index order, so exact operands give an exact result. Sums of others magnify as any sums do;
// results of MIN and MAX change at most as much as a number does.
absl::StatusOr<Radii> Scattered(const Node& node, Operands operands, const Literal& result) {
  const DType dtype = result.dtype();
  const Radii unknown(static_cast<size_t>(result.num_elements()), kUnknown);
  const auto combiner = static_cast<ScatterCombiner>(node.attrs.Int("combiner"));
  const bool ordered = combiner == ScatterCombiner::kMinimum || combiner == ScatterCombiner::kMaximum;
  if (combiner == ScatterCombiner::kSet) return Moved(node, operands, {0, 2}, {1}, result);
  if (!operands[1]->radius.empty() || !kInexact.Contains(dtype) || combiner == ScatterCombiner::kMultiply ||
      (ordered && kComplexes.Contains(dtype))) {
    return unknown;
  }
  const std::vector<Uncertain> x = UncertainOf(*operands[0]), updates = UncertainOf(*operands[2]);
  const auto fold = [&](const std::function<double(const Uncertain&)>& number) -> absl::StatusOr<Radii> {
    const Literal a = Doubles(operands[0]->value.shape(), x, number),
                  b = Doubles(operands[2]->value.shape(), updates, number);
    Attributes attrs = node.attrs;
    if (ordered) attrs.Set("combiner", static_cast<int64_t>(ScatterCombiner::kMaximum));
    return OnDoubles(node, attrs, {&a, &operands[1]->value, &b}, result.shape());
  };
  ASSIGN_OR_RETURN(const Radii moved, fold([](const Uncertain& u) { return u.radius; }));
  if (ordered) return moved;
  ASSIGN_OR_RETURN(const Radii magnitude, fold([](const Uncertain& u) { return FiniteSize(u) + u.radius; }));
  Accumulation a = AccumulationOf(dtype);
  a.unit = std::ldexp(1.0, -SignificandBits(dtype));  // 16-bit floats are rounded after each update
  const std::vector<Complex128> y = NumbersOf(result);
  Radii out(y.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = SumRadius(a, static_cast<double>(updates.size()) + 1, magnitude[i], moved[i], /*whole=*/false, y[i]);
  }
  return out;
}

absl::StatusOr<Radii> Rule(const Node& node, Operands operands, const Literal& result) {
  const CoreOp op = static_cast<CoreOp>(node.op->index);
  if (node.op->op_class != OpClass::kPlain) return Elementwise(node, op, operands, result);
  switch (op) {
    case CoreOp::kCompare:
    case CoreOp::kClamp:
    case CoreOp::kConvert:
      return Elementwise(node, op, operands, result);
    case CoreOp::kReduce: {
      const auto kind = static_cast<ReduceKind>(node.attrs.Int("kind"));
      const bool inexact = kInexact.Contains(result.dtype());
      if (inexact && kind == ReduceKind::kSum) return Sums(node, *operands[0], result);
      if (inexact && kind == ReduceKind::kProduct) return Products(node, *operands[0], result);
      return Extremes(node, *operands[0], result);
    }
    case CoreOp::kDotGeneral:
      return Dot(node, operands, result);
    case CoreOp::kSelect:
      return Moved(node, operands, {1, 2}, {0}, result);
    case CoreOp::kPad:
      return Moved(node, operands, {0, 1}, {}, result);
    case CoreOp::kConcatenate: {
      std::vector<size_t> all(operands.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      return Moved(node, operands, all, {}, result);
    }
    case CoreOp::kGather:
    case CoreOp::kGatherDynamicSliceSizes:
    case CoreOp::kDynamicSlice:
    case CoreOp::kDynamicTruncate:
      return Moved(node, operands, {0}, {1}, result);
    case CoreOp::kDynamicUpdateSlice:
      return Moved(node, operands, {0, 1}, {2}, result);
    case CoreOp::kScatter:
      return Scattered(node, operands, result);
    case CoreOp::kShapeOf:
      return Radii();
    default:
      return Moved(node, operands, {0}, {}, result);
  }
}

}  // namespace

absl::StatusOr<std::vector<double>> NodeRadius(const Node& node, Operands operands, const Literal& result) {
  const CoreOp op = static_cast<CoreOp>(node.op->index);
  bool exact = true;
  for (const BoundedLiteral* operand : operands) exact = exact && operand->radius.empty();
  const DType dtype = operands.empty() ? result.dtype() : operands.back()->value.dtype();
  if (exact && IsExactOp(op, node.attrs, dtype, result.dtype())) return Radii();
  ASSIGN_OR_RETURN(Radii radii, Rule(node, operands, result));
  const bool all_zero = std::all_of(radii.begin(), radii.end(), [](double r) { return r == 0; });
  return all_zero ? Radii() : radii;
}

}  // namespace tensord::property
