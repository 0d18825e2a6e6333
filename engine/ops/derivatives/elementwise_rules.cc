#include "engine/ops/derivatives/elementwise_rules.h"

#include <cmath>
#include <functional>
#include <numbers>

#include "engine/ops/derivatives/terms.h"

namespace tensord {
namespace {

// The operand, the result and the tangent of an op of one operand.
struct UnaryCall {
  explicit UnaryCall(JvpCall& call) : terms(call.graph), x(call.operands[0]), y(call.results[0]), t(call.tangents[0]) {}

  ValueId Fill(double value) { return terms.Fill(value, x); }
  // Returns (1 - x) (1 + x), exact near 1.
  ValueId OneMinusSquare(ValueId of) {
    const ValueId one = Fill(1);
    return terms.Mul(terms.Sub(one, of), terms.Add(one, of));
  }
  ValueId OnePlusSquare(ValueId of) { return terms.Add(Fill(1), terms.Mul(of, of)); }

  Terms terms;
  const ValueId x, y, t;
};

// An operand with 1 / x in the place of x where |x| > 1, so that its square stays in range.
struct FoldedOperand {
  explicit FoldedOperand(UnaryCall& call) {
    Terms& e = call.terms;
    const ValueId size = e.Unary(CoreOp::kAbs, call.x), one = call.Fill(1);
    is_far = e.Compare(CompareDirection::kGt, size, e.Fill(1, size));
    number = e.Select(is_far, e.Div(one, e.Select(is_far, call.x, one)), call.x);
    one_plus_square = call.OnePlusSquare(number);
  }

  ValueId is_far, number, one_plus_square;
};

}  // namespace

void JvpZero(JvpCall&) {}

// The tangents are a factor or a divisor, which is not linear in them. Where the result tells the derivative, the rule
// reads it and not the operand, which a network then need not keep.
#define TENSORD_UNARY_JVP(functor, tangent)  \
  void Jvp##functor(JvpCall& call) {         \
    UnaryCall c(call);                       \
    Terms& e = c.terms;                      \
    const ValueId x = c.x, y = c.y, t = c.t; \
    static_cast<void>(x);                    \
    static_cast<void>(y);                    \
    call.result_tangents[0] = tangent;       \
  }
TENSORD_UNARY_JVP(Exp, e.Mul(t, y))
TENSORD_UNARY_JVP(Log, e.Div(t, x))
TENSORD_UNARY_JVP(Sin, e.Mul(t, e.Unary(CoreOp::kCos, x)))
TENSORD_UNARY_JVP(Cos, e.Mul(t, e.Neg(e.Unary(CoreOp::kSin, x))))
TENSORD_UNARY_JVP(Tanh, e.Mul(t, c.OneMinusSquare(y)))
TENSORD_UNARY_JVP(Sqrt, e.Div(t, e.Add(y, y)))
TENSORD_UNARY_JVP(Rsqrt, e.Mul(t, e.Mul(e.Mul(c.Fill(-0.5), y), e.Mul(y, y))))
TENSORD_UNARY_JVP(Expm1, e.Mul(t, e.Unary(CoreOp::kExp, x)))
TENSORD_UNARY_JVP(Log1p, e.Div(t, e.Add(c.Fill(1), x)))
TENSORD_UNARY_JVP(Logistic, e.Mul(t, e.Mul(y, e.Sub(c.Fill(1), y))))
TENSORD_UNARY_JVP(Erf, e.Mul(t, e.Mul(c.Fill(2 * std::numbers::inv_sqrtpi), e.Unary(CoreOp::kExp, e.Neg(e.Mul(x, x))))))
TENSORD_UNARY_JVP(Tan, e.Mul(t, c.OnePlusSquare(y)))
TENSORD_UNARY_JVP(Cbrt, e.Div(t, e.Mul(c.Fill(3), e.Mul(y, y))))
TENSORD_UNARY_JVP(Sinh, e.Mul(t, e.Unary(CoreOp::kCosh, x)))
TENSORD_UNARY_JVP(Cosh, e.Mul(t, e.Unary(CoreOp::kSinh, x)))
TENSORD_UNARY_JVP(Asin, e.Div(t, e.Unary(CoreOp::kSqrt, c.OneMinusSquare(x))))
TENSORD_UNARY_JVP(Acos, e.Div(t, e.Neg(e.Unary(CoreOp::kSqrt, c.OneMinusSquare(x)))))
// The roots apart: that of the product has another sign in the left half of the plane.
TENSORD_UNARY_JVP(Acosh, e.Div(t, e.Mul(e.Unary(CoreOp::kSqrt, e.Sub(x, c.Fill(1))),
                                        e.Unary(CoreOp::kSqrt, e.Add(x, c.Fill(1))))))
TENSORD_UNARY_JVP(Atanh, e.Div(t, c.OneMinusSquare(x)))
TENSORD_UNARY_JVP(Log2, e.Div(t, e.Mul(c.Fill(std::numbers::ln2), x)))
TENSORD_UNARY_JVP(Log10, e.Div(e.Mul(t, c.Fill(std::numbers::log10e)), x))  // ln(10) x may overflow
TENSORD_UNARY_JVP(Exp2, e.Mul(t, e.Mul(c.Fill(std::numbers::ln2), y)))
#undef TENSORD_UNARY_JVP

// 1 / (1 + x^2), and far out v^2 / (1 + v^2) for v = 1 / x.
void JvpAtan(JvpCall& call) {
  UnaryCall c(call);
  Terms& e = c.terms;
  const FoldedOperand v(c);
  const ValueId above = e.Select(v.is_far, e.Mul(v.number, v.number), c.Fill(1));
  call.result_tangents[0] = e.Mul(c.t, e.Div(above, v.one_plus_square));
}

// 1 / sqrt(1 + x^2), and far out v / sqrt(1 + v^2) for v = 1 / x, with the sign that puts it into the right half.
void JvpAsinh(JvpCall& call) {
  UnaryCall c(call);
  Terms& e = c.terms;
  const FoldedOperand v(c);
  const ValueId real = e.Unary(CoreOp::kReal, c.x);
  const ValueId is_left = e.Compare(CompareDirection::kLt, real, e.Fill(0, real));
  const ValueId above = e.Select(v.is_far, e.Select(is_left, e.Neg(v.number), v.number), c.Fill(1));
  call.result_tangents[0] = e.Mul(c.t, e.Div(above, e.Unary(CoreOp::kSqrt, v.one_plus_square)));
}

void JvpAbs(JvpCall& call) {
  Terms e(call.graph);
  const ValueId sign = e.Unary(CoreOp::kSign, call.operands[0]), t = call.tangents[0];
  const bool is_complex = kComplexes.Contains(call.graph.type(call.operands[0]).dtype);
  const ValueId along = e.Mul(t, e.Conj(sign));
  call.result_tangents[0] = is_complex ? e.Unary(CoreOp::kReal, along) : along;
}

// (t - s Re(conj(s) t)) / |z|, the part of the tangent across the number; 0 at 0, and of real numbers.
void JvpSign(JvpCall& call) {
  const DType dtype = call.graph.type(call.operands[0]).dtype;
  if (!kComplexes.Contains(dtype)) return;
  Terms e(call.graph);
  const ValueId sign = call.results[0], t = call.tangents[0];
  const ValueId size = e.Unary(CoreOp::kAbs, call.operands[0]);
  const ValueId zero = e.Fill(0, size), one = e.Fill(1, size);
  const ValueId is_zero = e.Compare(CompareDirection::kEq, size, zero);
  const ValueId inverse = e.Select(is_zero, zero, e.Div(one, e.Select(is_zero, one, size)));
  const ValueId along = e.Unary(CoreOp::kReal, e.Mul(t, e.Conj(sign)));
  call.result_tangents[0] = e.Mul(e.Sub(t, e.Mul(e.Convert(along, dtype), sign)), e.Convert(inverse, dtype));
}

void JvpSum(JvpCall& call) {
  Terms e(call.graph);
  const bool subtracts = Is(call.op, CoreOp::kSubtract);
  if (call.has(0) && call.has(1)) {
    call.result_tangents[0] = call.graph.Add(call.op, {call.tangents[0], call.tangents[1]});
  } else {
    call.result_tangents[0] = call.has(0) ? call.tangents[0] : subtracts ? e.Neg(call.tangents[1]) : call.tangents[1];
  }
}

void JvpImagPart(JvpCall& call) {
  if (kComplexes.Contains(call.graph.type(call.operands[0]).dtype)) JvpLinear(call);
}

// (ta - y tb) / b.
void JvpDivide(JvpCall& call) {
  Terms e(call.graph);
  const ValueId b = call.operands[1], y = call.results[0];
  ValueId above = call.tangents[0];
  if (call.has(1)) {
    const ValueId falling = e.Mul(call.tangents[1], y);
    above = above.is_set() ? e.Sub(above, falling) : e.Neg(falling);
  }
  call.result_tangents[0] = e.Div(above, b);
}

void JvpMakeComplex(JvpCall& call) {
  Terms e(call.graph);
  const ValueId re = e.OrZeros(call.tangents[0], call.graph.type(call.operands[0]));
  const ValueId im = e.OrZeros(call.tangents[1], call.graph.type(call.operands[1]));
  call.result_tangents[0] = call.graph.Add(call.op, {re, im});
}

// The winner takes the tangent. At a tie either takes half.
void JvpMaximum(JvpCall& call) {
  Terms e(call.graph);
  const ValueId a = call.operands[0], b = call.operands[1];
  const ValueId tie = e.Compare(CompareDirection::kEq, a, b), half = e.Fill(0.5, a), zero = e.Fill(0, a);
  ValueId sum;
  for (size_t i = 0; i < 2; ++i) {
    if (!call.has(i)) continue;
    const ValueId wins = e.Compare(CompareDirection::kEq, call.operands[i], call.results[0]);
    const ValueId t = call.tangents[i];
    sum = e.Sum(sum, e.Select(tie, e.Mul(t, half), e.Select(wins, t, zero)));
  }
  call.result_tangents[0] = sum;
}

void JvpMinimum(JvpCall& call) { JvpMaximum(call); }

// By the base b x^(b-1), by the exponent y log(x), 0 where x is 0. With the exponent 0 the first is 0, and its slope
// along the exponent 1 / x; but where x is so small that x^-2 is no number, all of it is 0.
void JvpPow(JvpCall& call) {
  Terms e(call.graph);
  const ValueId x = call.operands[0], b = call.operands[1], y = call.results[0];
  const ValueId zero = e.Fill(0, x), one = e.Fill(1, x);
  ValueId sum;
  if (call.has(0)) {
    const ValueId is_constant = e.Compare(CompareDirection::kEq, b, zero);
    const ValueId size = e.Unary(CoreOp::kAbs, x);
    const ValueId curves = e.Unary(CoreOp::kIsFinite, e.Div(e.Fill(1, size), e.Mul(size, size)));
    const ValueId is_flat = e.Binary(CoreOp::kAnd, is_constant, e.Unary(CoreOp::kNot, curves));
    const ValueId power = e.Binary(CoreOp::kPow, e.Select(is_flat, one, x), e.Sub(b, one));
    sum = e.Mul(call.tangents[0], e.Mul(b, e.Select(is_flat, zero, power)));
  }
  if (call.has(1)) {
    const ValueId at_zero = e.Compare(CompareDirection::kEq, x, zero);
    const ValueId log = e.Unary(CoreOp::kLog, e.Select(at_zero, one, x));
    sum = e.Sum(sum, e.Mul(call.tangents[1], e.Select(at_zero, zero, e.Mul(y, log))));
  }
  call.result_tangents[0] = sum;
}

// ta - trunc(a / b) tb. The quotient is a whole number but for its rounding.
void JvpRemainder(JvpCall& call) {
  Terms e(call.graph);
  const ValueId a = call.operands[0], b = call.operands[1], y = call.results[0];
  ValueId tangent = call.tangents[0];
  if (call.has(1)) {
    const ValueId quotient = e.Unary(CoreOp::kRoundNearestEven, e.Div(e.Sub(a, y), b));
    tangent = e.Sum(tangent, e.Mul(call.tangents[1], e.Neg(quotient)));
  }
  call.result_tangents[0] = tangent;
}

// (x ty - y tx) / (x^2 + y^2) for the operands y, x; by the larger one's size, since squares leave the range.
void JvpAtan2(JvpCall& call) {
  Terms e(call.graph);
  const ValueId y = call.operands[0], x = call.operands[1], one = e.Fill(1, x);
  const ValueId is_steep = e.Compare(CompareDirection::kGt, e.Unary(CoreOp::kAbs, y), e.Unary(CoreOp::kAbs, x));
  const ValueId large = e.Select(is_steep, y, x), small = e.Select(is_steep, x, y);
  const ValueId ratio = e.Div(small, large);
  const ValueId inverse = e.Div(e.Div(one, e.Add(one, e.Mul(ratio, ratio))), large);
  ValueId sum;
  if (call.has(0)) sum = e.Mul(call.tangents[0], e.Mul(e.Select(is_steep, ratio, one), inverse));
  if (call.has(1)) sum = e.Sum(sum, e.Mul(call.tangents[1], e.Neg(e.Mul(e.Select(is_steep, one, ratio), inverse))));
  call.result_tangents[0] = sum;
}

void TransposeNegate(TransposeCall& call) { call.operand_cotangents[0] = Terms(call.graph).Neg(call.cotangents[0]); }

void TransposeConj(TransposeCall& call) { call.operand_cotangents[0] = Terms(call.graph).Conj(call.cotangents[0]); }

void TransposeRealPart(TransposeCall& call) {
  call.operand_cotangents[0] = Terms(call.graph).Convert(call.cotangents[0], call.operand_types[0]->dtype);
}

void TransposeImagPart(TransposeCall& call) {
  if (!kComplexes.Contains(call.operand_types[0]->dtype)) return;
  Terms e(call.graph);
  const ValueId ct = call.cotangents[0];
  call.operand_cotangents[0] = e.Binary(CoreOp::kComplex, e.Fill(0, ct), ct);
}

void TransposeAdd(TransposeCall& call) {
  for (size_t i = 0; i < 2; ++i) {
    if (call.is_linear(i)) call.operand_cotangents[i] = call.cotangents[0];
  }
}

void TransposeSubtract(TransposeCall& call) {
  if (call.is_linear(0)) call.operand_cotangents[0] = call.cotangents[0];
  if (call.is_linear(1)) call.operand_cotangents[1] = Terms(call.graph).Neg(call.cotangents[0]);
}

void TransposeMultiply(TransposeCall& call) {
  Terms e(call.graph);
  const size_t linear = call.is_linear(0) ? 0 : 1;
  call.operand_cotangents[linear] = e.Mul(call.cotangents[0], e.Conj(call.operands[1 - linear]));
}

void TransposeDivide(TransposeCall& call) {
  Terms e(call.graph);
  call.operand_cotangents[0] = e.Div(call.cotangents[0], e.Conj(call.operands[1]));
}

void TransposeMakeComplex(TransposeCall& call) {
  Terms e(call.graph);
  if (call.is_linear(0)) call.operand_cotangents[0] = e.Unary(CoreOp::kReal, call.cotangents[0]);
  if (call.is_linear(1)) call.operand_cotangents[1] = e.Unary(CoreOp::kImag, call.cotangents[0]);
}

}  // namespace tensord
