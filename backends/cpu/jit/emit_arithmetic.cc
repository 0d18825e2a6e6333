// Arithmetic of floats, integers and complex numbers, each with the very instructions of the tile interpreter's loops,
// so that results have the same bits: nothing is contracted.
#if TENSORD_HAS_JIT

#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/jit/emitter.h"

namespace tensord::cpu {

// The instruction for F32 or for F64.
#define TENSORD_BY_FLOAT(dtype, stem, ...) (IsDouble(dtype) ? stem##pd(__VA_ARGS__) : stem##ps(__VA_ARGS__))
#define TENSORD_BY_INTEGER(dtype, stem, ...) ((dtype) == DType::kI64 ? stem##q(__VA_ARGS__) : stem##d(__VA_ARGS__))

void JitEmitter::EmitOp(const JitNode& node, const Xmm& out, const Operands& in) {
  switch (node.op_kind) {
    case MicroKind::kUnary:
      EmitUnary(node, out, in[0].reg);
      break;
    case MicroKind::kBinary:
      EmitBinary(node, out, in[0].reg, in[1], in[0]);
      break;
    case MicroKind::kCompare:
      return EmitCompare(node.direction, RegisterDType(node.computed), out, in[0].reg, in[1].reg);
    case MicroKind::kSelect:
      return EmitSelect(node, out, in[0].reg, in[1].reg, in[2].reg);
    case MicroKind::kConvert:
      EmitConvert(RegisterDType(node.computed), RegisterDType(node.dtype), out, in[0].reg);
      break;
    default:
      break;
  }
  if (RegisterDType(node.dtype) != node.dtype) RoundToHalf(node.dtype, out);
}

void JitEmitter::EmitUnary(const JitNode& node, const Xmm& out, const Xmm& x) {
  const DType dtype = RegisterDType(node.computed);
  switch (dtype) {
    case DType::kF32:
    case DType::kF64:
      return EmitFloatUnary(node.op, dtype, out, x);
    case DType::kC64:
    case DType::kC128:
      return EmitComplexUnary(node.op, dtype, out, x);
    case DType::kBool:
      return vxorps(out, x, Constant32(0xffffffff));  // not
    default:
      return EmitIntegerUnary(node.op, dtype, out, x);
  }
}

void JitEmitter::EmitFloatUnary(CoreOp op, DType dtype, const Xmm& out, const Xmm& x) {
  const Xmm t0 = Scratch(0, BitsOf(x));
  // 1: down, 2: up, 0: to nearest even.
  const auto round = [&](int mode) {
    const uint8_t how = static_cast<uint8_t>(mode | 8);
    if (is_avx512()) {
      TENSORD_BY_FLOAT(dtype, vrndscale, out, x, how);
    } else {
      TENSORD_BY_FLOAT(dtype, vround, out, x, how);
    }
  };
  switch (op) {
    case CoreOp::kNegate:
      return TENSORD_BY_FLOAT(dtype, vxor, out, x, LaneConstant(dtype, 0x80000000, uint64_t{1} << 63));
    case CoreOp::kAbs:
      return TENSORD_BY_FLOAT(dtype, vand, out, x, LaneConstant(dtype, 0x7fffffff, ~uint64_t{0} >> 1));
    case CoreOp::kSqrt:
      return TENSORD_BY_FLOAT(dtype, vsqrt, out, x);
    case CoreOp::kRsqrt: {
      const Xmm t1 = Scratch(1, BitsOf(x));
      TENSORD_BY_FLOAT(dtype, vsqrt, t0, x);
      TENSORD_BY_FLOAT(dtype, vmova, t1, FloatConstant(dtype, 1));
      return TENSORD_BY_FLOAT(dtype, vdiv, out, t1, t0);
    }
    case CoreOp::kExp:
      if (dtype == DType::kF32) return EmitExp(dtype, *GetVectorMathCalls().exp_f32, out, x);
      return EmitExp(dtype, *GetVectorMathCalls().exp_f64, out, x);
    case CoreOp::kFloor:
      return round(1);
    case CoreOp::kCeil:
      return round(2);
    case CoreOp::kRoundNearestEven:
      return round(0);
    case CoreOp::kSign:
      return EmitFloatSign(dtype, out, x);
    case CoreOp::kIsFinite: {
      const Xmm t1 = Scratch(1, BitsOf(x));
      TENSORD_BY_FLOAT(dtype, vand, t0, x, LaneConstant(dtype, 0x7fffffff, ~uint64_t{0} >> 1));
      TENSORD_BY_FLOAT(dtype, vmova, t1, FloatConstant(dtype, INFINITY));
      return EmitCompare(CompareDirection::kLt, dtype, out, t0, t1);
    }
    default:
      break;
  }
}

// Computes as ExpOfClamped of backends/cpu/math/vector_math_exp-inl.h.
template <typename T>
void JitEmitter::EmitExp(DType dtype, const ExpNumbers<T>& numbers, const Xmm& out, const Xmm& x) {
  const int bytes = BitsOf(out);
  const Xmm r = Scratch(0, bytes), shifted = Scratch(1, bytes), n = Scratch(2, bytes), power = Scratch(3, bytes);
  const auto number = [&](T value) { return FloatConstant(dtype, static_cast<double>(value)); };
  constexpr uint8_t kLess = 17;  // of vcmpps; of NaN no
  TENSORD_BY_FLOAT(dtype, vcmp, k1, x, number(numbers.underflow), kLess);
  TENSORD_BY_FLOAT(dtype, vblendm, r | k1, x, number(numbers.far));
  TENSORD_BY_FLOAT(dtype, vmova, n, number(numbers.overflow));
  TENSORD_BY_FLOAT(dtype, vmin, r, n, r);  // of NaN the second operand
  TENSORD_BY_FLOAT(dtype, vmova, shifted, number(numbers.sixteenths_per_one));
  TENSORD_BY_FLOAT(dtype, vfmadd213, shifted, r, number(numbers.rounder));
  TENSORD_BY_FLOAT(dtype, vsub, n, shifted, number(numbers.rounder));
  TENSORD_BY_FLOAT(dtype, vfnmadd231, r, n, number(numbers.sixteenth_high));
  TENSORD_BY_FLOAT(dtype, vfnmadd231, r, n, number(numbers.sixteenth_low));
  TENSORD_BY_FLOAT(dtype, vmul, n, n, number(T(0.0625)));
  const Xbyak::Zmm all_of_power(power.getIdx()), index(shifted.getIdx());  // the table is as long as that
  if (IsDouble(dtype)) {
    vmovapd(all_of_power, Vector(numbers.powers));
    vpermt2pd(all_of_power, index, Vector(numbers.powers + 8));
  } else {
    vpermps(all_of_power, index, Vector(numbers.powers));
  }
  TENSORD_BY_FLOAT(dtype, vmul, shifted, r, r);
  TENSORD_BY_FLOAT(dtype, vmova, out, number(numbers.poly.back()));
  for (size_t i = numbers.poly.size() - 1; i-- > 0;) {
    TENSORD_BY_FLOAT(dtype, vfmadd213, out, r, number(numbers.poly[i]));
  }
  TENSORD_BY_FLOAT(dtype, vfmadd213, out, shifted, r);
  TENSORD_BY_FLOAT(dtype, vfmadd213, out, power, power);
  TENSORD_BY_FLOAT(dtype, vscalef, out, out, n);
}

// ±1 with the sign of x, but x itself where it is NaN or a zero.
void JitEmitter::EmitFloatSign(DType dtype, const Xmm& out, const Xmm& x) {
  const Xmm t0 = Scratch(0, BitsOf(x)), t1 = Scratch(1, BitsOf(x));
  constexpr uint8_t kNotEqualOrdered = 12;  // of vcmpps
  TENSORD_BY_FLOAT(dtype, vand, t0, x, LaneConstant(dtype, 0x80000000, uint64_t{1} << 63));
  TENSORD_BY_FLOAT(dtype, vor, t0, t0, FloatConstant(dtype, 1));
  vxorps(t1, t1, t1);
  if (is_avx512()) {
    TENSORD_BY_FLOAT(dtype, vcmp, k1, x, t1, kNotEqualOrdered);
    TENSORD_BY_FLOAT(dtype, vblendm, out | k1, x, t0);
  } else {
    TENSORD_BY_FLOAT(dtype, vcmp, t1, x, t1, kNotEqualOrdered);
    TENSORD_BY_FLOAT(dtype, vblendv, out, x, t0, t1);
  }
}

void JitEmitter::EmitIntegerUnary(CoreOp op, DType dtype, const Xmm& out, const Xmm& x) {
  const Xmm t0 = Scratch(0, BitsOf(x)), t1 = Scratch(1, BitsOf(x));
  switch (op) {
    case CoreOp::kNegate:
      vxorps(t0, t0, t0);
      return TENSORD_BY_INTEGER(dtype, vpsub, out, t0, x);
    case CoreOp::kNot:
      return vxorps(out, x, Constant32(0xffffffff));
    case CoreOp::kAbs:
      if (dtype == DType::kI32) return vpabsd(out, x);
      if (is_avx512()) return vpabsq(out, x);
      vxorps(t0, t0, t0);
      vpcmpgtq(t0, t0, x);  // -1 where negative
      vxorps(t1, x, t0);
      return vpsubq(out, t1, t0);
    case CoreOp::kSign:
      if (is_avx512()) {
        TENSORD_BY_INTEGER(dtype, vpmins, t0, x, LaneConstant(dtype, 1, 1));
        return TENSORD_BY_INTEGER(dtype, vpmaxs, out, t0, Constant32(0xffffffff));
      }
      vxorps(t0, t0, t0);
      TENSORD_BY_INTEGER(dtype, vpcmpgt, t1, x, t0);
      TENSORD_BY_INTEGER(dtype, vpcmpgt, t0, t0, x);
      return TENSORD_BY_INTEGER(dtype, vpsub, out, t0, t1);
    default:
      break;
  }
}

void JitEmitter::EmitComplexUnary(CoreOp op, DType dtype, const Xmm& out, const Xmm& x) {
  constexpr uint64_t kSign32 = uint64_t{1} << 31, kSign64 = uint64_t{1} << 63;
  const bool is_double = IsDouble(dtype);
  switch (op) {
    case CoreOp::kNegate:
      return vxorps(out, x, is_double ? Constant(kSign64, 0, 8) : Constant(kSign32, 0, 4));
    case CoreOp::kConj:
      return vxorps(out, x, is_double ? Constant(0, kSign64, 16) : Constant(kSign32 << 32, 0, 8));
    case CoreOp::kReal:
      return PackDoubleWords(out, x, 0);
    case CoreOp::kImag:
      return PackDoubleWords(out, x, 1);
    default:
      break;
  }
}

// The lower or the upper half of each pair of double words.
void JitEmitter::PackDoubleWords(const Xmm& out, const Xmm& x, int odd) {
  const Xmm t0 = Scratch(0, BitsOf(x));
  if (is_avx512()) {
    if (odd == 0) return vpmovqd(out, x);
    vpsrlq(t0, x, 32);
    return vpmovqd(out, t0);
  }
  const Xmm low = Register(x.getIdx(), 16), high = Scratch(0, 16);
  if (BitsOf(x) == 32) vextracti128(high, Xbyak::Ymm(x.getIdx()), 1);
  vshufps(out, low, high, odd == 0 ? 0x88 : 0xdd);
}

void JitEmitter::EmitBinary(const JitNode& node, const Xmm& out, const Xmm& a, const Operand& b, const Operand& first) {
  const DType dtype = RegisterDType(node.computed);
  switch (dtype) {
    case DType::kF32:
    case DType::kF64:
      return EmitFloatBinary(node.op, dtype, out, a, b, first);
    case DType::kC64:
    case DType::kC128:
      if (node.op == CoreOp::kMultiply) return EmitComplexProduct(dtype, out, a, b.reg);
      return EmitFloatBinary(node.op, dtype, out, a, b, first);
    case DType::kBool:
      return EmitBoolBinary(node.op, out, a, b.reg);
    default:
      return EmitIntegerBinary(node.op, dtype, out, a, b);
  }
}

void JitEmitter::EmitFloatBinary(CoreOp op, DType dtype, const Xmm& out, const Xmm& a, const Operand& b,
                                 const Operand& first) {
  switch (op) {
    case CoreOp::kAdd:
      return TENSORD_BY_FLOAT(dtype, vadd, out, a, b.any());
    case CoreOp::kSubtract:
      return TENSORD_BY_FLOAT(dtype, vsub, out, a, b.any());
    case CoreOp::kMultiply:
      return TENSORD_BY_FLOAT(dtype, vmul, out, a, b.any());
    case CoreOp::kDivide:
      return TENSORD_BY_FLOAT(dtype, vdiv, out, a, b.any());
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
      return EmitOrder(op == CoreOp::kMaximum, dtype, out, first, b);
    case CoreOp::kComplex: {
      const Xmm t0 = Scratch(0, BitsOf(out)), t1 = Scratch(1, BitsOf(out));
      vpmovzxdq(t0, a);
      vpmovzxdq(t1, b.reg);
      vpsllq(t1, t1, 32);
      return vorps(out, t0, t1);
    }
    default:
      break;
  }
}

namespace {

// Returns a constant of that dtype; NaN for anything else.
double ConstantOf(const JitNode& node, DType dtype) {
  if (node.kind != JitNode::Kind::kConstant || node.dtype != dtype) return NAN;
  if (dtype == DType::kF64) {
    double value;
    std::memcpy(&value, node.constant.data(), sizeof(value));
    return value;
  }
  float value;
  std::memcpy(&value, node.constant.data(), sizeof(value));
  return static_cast<double>(value);
}

}  // namespace

// NaN wins, the first one before the second; +0 is above -0.
void JitEmitter::EmitOrder(bool is_max, DType dtype, const Xmm& out, const Operand& a, const Operand& b) {
  const auto machine_order = [&](const Xmm& to, const Xmm& x, const Xmm& y) {  // y where they are equal or one is NaN
    if (is_max) {
      TENSORD_BY_FLOAT(dtype, vmax, to, x, y);
    } else {
      TENSORD_BY_FLOAT(dtype, vmin, to, x, y);
    }
  };
  // Beside a constant that is neither NaN nor zero there is no special case but the other operand's NaN.
  const double first = ConstantOf(*a.node, dtype), second = ConstantOf(*b.node, dtype);
  if (!std::isnan(first) && first != 0) return machine_order(out, a.reg, b.reg);
  if (!std::isnan(second) && second != 0) return machine_order(out, b.reg, a.reg);
  const int bytes = BitsOf(out);
  const Xmm t0 = Scratch(0, bytes), t1 = Scratch(1, bytes), t2 = Scratch(2, bytes);
  if (is_avx512()) {
    const uint8_t range = is_max ? 5 : 4;  // with the sign of what it chooses
    TENSORD_BY_FLOAT(dtype, vrange, t0, a.reg, b.reg, range);
    // For both kinds of NaN the second operand, everything else as it is.
    const Xbyak::Address table = LaneConstant(dtype, 0x11, 0x11);
    if (std::isnan(second)) TENSORD_BY_FLOAT(dtype, vfixupimm, t0, b.reg, table, 0);
    if (std::isnan(first)) TENSORD_BY_FLOAT(dtype, vfixupimm, t0, a.reg, table, 0);
    return TENSORD_BY_FLOAT(dtype, vmova, out, t0);
  }
  machine_order(t0, a.reg, b.reg);
  TENSORD_BY_FLOAT(dtype, vcmp, t1, a.reg, b.reg, kPredicateEq);
  if (is_max) {
    TENSORD_BY_FLOAT(dtype, vand, t2, a.reg, b.reg);
  } else {
    TENSORD_BY_FLOAT(dtype, vor, t2, a.reg, b.reg);
  }
  TENSORD_BY_FLOAT(dtype, vblendv, t0, t0, t2, t1);
  TENSORD_BY_FLOAT(dtype, vcmp, t1, a.reg, a.reg, kPredicateUnordered);
  TENSORD_BY_FLOAT(dtype, vblendv, out, t0, a.reg, t1);
}

void JitEmitter::EmitIntegerBinary(CoreOp op, DType dtype, const Xmm& out, const Xmm& a, const Operand& b) {
  const bool is_long = dtype == DType::kI64;
  switch (op) {
    case CoreOp::kAdd:
      return TENSORD_BY_INTEGER(dtype, vpadd, out, a, b.any());
    case CoreOp::kSubtract:
      return TENSORD_BY_INTEGER(dtype, vpsub, out, a, b.any());
    case CoreOp::kMultiply:
      return is_long ? vpmullq(out, a, b.any()) : vpmulld(out, a, b.any());
    case CoreOp::kDivide:
    case CoreOp::kRemainder:
      return EmitDivision(op, dtype, out, a, *b.node);
    case CoreOp::kMaximum:
      if (!is_long) return vpmaxsd(out, a, b.reg);
      if (is_avx512()) return vpmaxsq(out, a, b.reg);
      vpcmpgtq(Scratch(0, BitsOf(out)), a, b.reg);
      return vblendvpd(out, b.reg, a, Scratch(0, BitsOf(out)));
    case CoreOp::kMinimum:
      if (!is_long) return vpminsd(out, a, b.reg);
      if (is_avx512()) return vpminsq(out, a, b.reg);
      vpcmpgtq(Scratch(0, BitsOf(out)), a, b.reg);
      return vblendvpd(out, a, b.reg, Scratch(0, BitsOf(out)));
    case CoreOp::kAnd:
      return vandps(out, a, b.reg);
    case CoreOp::kOr:
      return vorps(out, a, b.reg);
    case CoreOp::kXor:
      return vxorps(out, a, b.reg);
    default:
      break;
  }
}

void JitEmitter::EmitBoolBinary(CoreOp op, const Xmm& out, const Xmm& a, const Xmm& b) {
  switch (op) {
    case CoreOp::kAnd:
    case CoreOp::kMultiply:
    case CoreOp::kMinimum:
      return vandps(out, a, b);
    case CoreOp::kXor:
      return vxorps(out, a, b);
    default:  // or, add, maximum
      return vorps(out, a, b);
  }
}

// Computes as backends/cpu/math/complex_product-inl.h.
void JitEmitter::EmitComplexProduct(DType dtype, const Xmm& out, const Xmm& a, const Xmm& b) {
  const int bytes = BitsOf(out);
  const Xmm t0 = Scratch(0, bytes), t1 = Scratch(1, bytes), t2 = Scratch(2, bytes);
  if (IsDouble(dtype)) {
    vpermilpd(t0, a, 0);
    vpermilpd(t1, a, 0xff);
    vpermilpd(t2, b, 0x55);
    vmulpd(t0, t0, b);
    vmulpd(t1, t1, t2);
    vxorpd(t1, t1, Constant(uint64_t{1} << 63, 0, 16));
    return vaddpd(out, t0, t1);
  }
  vmovsldup(t0, a);
  vmovshdup(t1, a);
  vpermilps(t2, b, 0xb1);
  vmulps(t0, t0, b);
  vmulps(t1, t1, t2);
  vxorps(t1, t1, Constant(0x80000000, 0, 8));
  vaddps(out, t0, t1);
}

#undef TENSORD_BY_FLOAT
#undef TENSORD_BY_INTEGER

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
