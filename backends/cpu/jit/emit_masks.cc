// Comparisons, selections and conversions.
#if TENSORD_HAS_JIT

#include "backends/cpu/jit/emitter.h"

namespace tensord::cpu {

#define TENSORD_BY_FLOAT(dtype, stem, ...) (IsDouble(dtype) ? stem##pd(__VA_ARGS__) : stem##ps(__VA_ARGS__))

void JitEmitter::CompareToMask(const Xbyak::Opmask& out, CompareDirection direction, DType dtype, const Xmm& x,
                               const Xmm& y) {
  if (kLaneFloats.Contains(dtype)) {
    // Ordered but for "not equal", as C++ has them.
    int predicate = kPredicateEq;
    if (direction == CompareDirection::kNe) predicate = kPredicateNe;
    if (direction == CompareDirection::kLt) predicate = kPredicateLt;
    if (direction == CompareDirection::kLe) predicate = kPredicateLe;
    if (direction == CompareDirection::kGt) predicate = kPredicateGt;
    if (direction == CompareDirection::kGe) predicate = kPredicateGe;
    return TENSORD_BY_FLOAT(dtype, vcmp, out, x, y, static_cast<uint8_t>(predicate));
  }
  uint8_t predicate = 0;
  if (direction == CompareDirection::kLt) predicate = 1;
  if (direction == CompareDirection::kLe) predicate = 2;
  if (direction == CompareDirection::kNe) predicate = 4;
  if (direction == CompareDirection::kGe) predicate = 5;
  if (direction == CompareDirection::kGt) predicate = 6;
  if (dtype == DType::kI64) return vpcmpq(out, x, y, predicate);
  vpcmpd(out, x, y, predicate);
}

void JitEmitter::CompareToLanes(const Xmm& out, CompareDirection direction, DType dtype, const Xmm& x, const Xmm& y) {
  if (kLaneFloats.Contains(dtype)) {
    int predicate = kPredicateEq;
    if (direction == CompareDirection::kNe) predicate = kPredicateNe;
    if (direction == CompareDirection::kLt) predicate = kPredicateLt;
    if (direction == CompareDirection::kLe) predicate = kPredicateLe;
    if (direction == CompareDirection::kGt) predicate = kPredicateGt;
    if (direction == CompareDirection::kGe) predicate = kPredicateGe;
    return TENSORD_BY_FLOAT(dtype, vcmp, out, x, y, static_cast<uint8_t>(predicate));
  }
  const bool is_long = dtype == DType::kI64;
  bool negated = false;
  switch (direction) {
    case CompareDirection::kNe:
      negated = true;
      [[fallthrough]];
    case CompareDirection::kEq:
      is_long ? vpcmpeqq(out, x, y) : vpcmpeqd(out, x, y);
      break;
    case CompareDirection::kLe:
      negated = true;
      [[fallthrough]];
    case CompareDirection::kGt:
      is_long ? vpcmpgtq(out, x, y) : vpcmpgtd(out, x, y);
      break;
    case CompareDirection::kGe:
      negated = true;
      [[fallthrough]];
    default:
      is_long ? vpcmpgtq(out, y, x) : vpcmpgtd(out, y, x);
      break;
  }
  if (negated) vxorps(out, out, Constant32(0xffffffff));
}

void JitEmitter::MaskToValue(const Xmm& out, const Xbyak::Opmask& mask) {
  if (mask_bytes_ == 8) return vpmovm2q(out, mask);
  vpmovm2d(out, mask);
}

void JitEmitter::ValueToMask(const Xbyak::Opmask& out, const Xmm& mask) {
  if (mask_bytes_ == 8) return vpmovq2m(out, mask);
  vpmovd2m(out, mask);
}

void JitEmitter::LanesToValue(const Xmm& out, const Xmm& lanes, int element_bytes) {
  if (element_bytes < mask_bytes_) return vpmovsxdq(out, Xmm(lanes.getIdx()));
  if (out.getIdx() != lanes.getIdx()) vmovaps(out, lanes);
}

JitEmitter::Xmm JitEmitter::ValueToLanes(const Xmm& scratch, const Xmm& mask, int element_bytes) {
  if (element_bytes >= mask_bytes_) return mask;
  const Xmm out(scratch.getIdx());
  vextracti128(out, Xbyak::Ymm(mask.getIdx()), 1);
  vshufps(out, Xmm(mask.getIdx()), out, 0x88);
  return out;
}

void JitEmitter::EmitCompare(CompareDirection direction, DType dtype, const Xmm& out, const Xmm& x, const Xmm& y) {
  if (is_avx512()) {
    CompareToMask(k1, direction, dtype, x, y);
    return MaskToValue(out, k1);
  }
  const Xmm t2 = Scratch(2, BitsOf(x));
  CompareToLanes(t2, direction, dtype, x, y);
  LanesToValue(out, t2, RegisterBytes(dtype));
}

void JitEmitter::EmitSelect(const JitNode& node, const Xmm& out, const Xmm& predicate, const Xmm& yes, const Xmm& no) {
  const int element_bytes = node.dtype == DType::kBool ? mask_bytes_ : RegisterBytes(node.dtype);
  if (is_avx512()) {
    ValueToMask(k1, predicate);
    if (element_bytes == 8) return vblendmpd(out | k1, no, yes);
    return vblendmps(out | k1, no, yes);
  }
  const Xmm mask = ValueToLanes(Scratch(0, 16), predicate, element_bytes);
  if (element_bytes == 8) return vblendvpd(out, no, yes, mask);
  vblendvps(out, no, yes, mask);
}

void JitEmitter::EmitCompareSelect(const JitNode& node, const Xmm& out, const Operands& in) {
  const DType compared = RegisterDType(node.computed);
  const int element_bytes = RegisterBytes(node.dtype);
  if (is_avx512()) {
    CompareToMask(k1, node.direction, compared, in[0].reg, in[1].reg);
    if (element_bytes == 8) return vblendmpd(out | k1, in[3].reg, in[2].reg);
    return vblendmps(out | k1, in[3].reg, in[2].reg);
  }
  const Xmm t2 = Scratch(2, BitsOf(in[0].reg));
  CompareToLanes(t2, node.direction, compared, in[0].reg, in[1].reg);
  Xmm mask = t2;
  if (RegisterBytes(compared) != element_bytes) {
    const Xmm value = Scratch(1, lanes_ * mask_bytes_);
    LanesToValue(value, t2, RegisterBytes(compared));
    mask = ValueToLanes(Scratch(0, 16), value, element_bytes);
  }
  if (element_bytes == 8) return vblendvpd(out, in[3].reg, in[2].reg, mask);
  vblendvps(out, in[3].reg, in[2].reg, mask);
}

void JitEmitter::EmitConvert(DType from, DType to, const Xmm& out, const Xmm& x) {
  if (from == to) {
    if (out.getIdx() != x.getIdx()) vmovaps(out, x);
    return;
  }
  if (from == DType::kBool) return EmitFromBool(to, out, x);
  if (to == DType::kBool) {
    const Xmm zero = Scratch(0, BitsOf(x));
    vxorps(zero, zero, zero);
    return EmitCompare(CompareDirection::kNe, from, out, x, zero);
  }
  if (to == DType::kC64) return vpmovzxdq(out, x);
  if (to == DType::kC128 && !is_avx512()) {
    const Xbyak::Ymm pairs(out.getIdx()), zero(Scratch(0, 32).getIdx());
    vpermpd(pairs, Xbyak::Ymm(x.getIdx()), 0x50);
    vxorpd(zero, zero, zero);
    return vblendpd(pairs, pairs, zero, 0b1010);
  }
  if (to == DType::kC128) {
    mov(eax, 0x55);  // the real parts
    kmovb(k1, eax);
    return vexpandpd(out | k1 | T_z, Register(x.getIdx(), BitsOf(out)));
  }
  if (kLaneFloats.Contains(from) && !kLaneFloats.Contains(to)) return EmitTruncate(from, to, out, x);
  switch (from) {
    case DType::kF32:
      return vcvtps2pd(out, x);
    case DType::kF64:
      return vcvtpd2ps(out, x);
    case DType::kI32:
      if (to == DType::kI64) return vpmovsxdq(out, x);
      if (to == DType::kF64) return vcvtdq2pd(out, x);
      return vcvtdq2ps(out, x);
    default:
      if (to == DType::kI32) return PackDoubleWords(out, x, 0);
      if (to == DType::kF64) return vcvtqq2pd(out, x);
      return vcvtqq2ps(out, x);
  }
}

void JitEmitter::EmitFromBool(DType to, const Xmm& out, const Xmm& x) {
  const Xbyak::Address one = kLaneFloats.Contains(to) ? FloatConstant(to, 1) : LaneConstant(to, 1, 1);
  if (is_avx512()) {
    ValueToMask(k1, x);
    if (RegisterBytes(to) == 8) return vmovapd(out | k1 | T_z, one);
    return vmovaps(out | k1 | T_z, one);
  }
  vandps(out, ValueToLanes(Scratch(0, 16), x, RegisterBytes(to)), one);
}

// NaN gives 0, and a number out of range the nearest end. The machine gives the lowest number for all of them.
void JitEmitter::EmitTruncate(DType from, DType to, const Xmm& out, const Xmm& x) {
  const bool is_long = to == DType::kI64;
  const Xmm t0 = Scratch(0, BitsOf(x));
  TENSORD_BY_FLOAT(from, vmova, t0, FloatConstant(from, is_long ? 0x1p63 : 0x1p31));
  if (!is_avx512()) {  // F32 to I32
    const Xmm t1 = Scratch(1, BitsOf(x)), t2 = Scratch(2, BitsOf(x));
    constexpr uint8_t kOrdered = 7;  // of vcmpps
    vcmpps(t0, x, t0, kPredicateGe);
    vcmpps(t1, x, x, kOrdered);
    vcvttps2dq(t2, x);
    vxorps(t2, t2, t0);  // the lowest number becomes the highest
    return vandps(out, t2, t1);
  }
  TENSORD_BY_FLOAT(from, vcmp, k1, x, t0, kPredicateGe);
  TENSORD_BY_FLOAT(from, vcmp, k2, x, x, kPredicateUnordered);
  if (is_long) {
    IsDouble(from) ? vcvttpd2qq(out, x) : vcvttps2qq(out, x);
    vmovdqa64(out | k1, Constant(~uint64_t{0} >> 1, 0, 8));
    const Xmm zero = Scratch(1, BitsOf(out));
    vxorps(zero, zero, zero);
    return vmovdqa64(out | k2, zero);
  }
  IsDouble(from) ? vcvttpd2dq(out, x) : vcvttps2dq(out, x);
  vmovdqa32(out | k1, Constant32(0x7fffffff));
  const Xmm zero = Scratch(1, BitsOf(out));
  vxorps(zero, zero, zero);
  vmovdqa32(out | k2, zero);
}

void JitEmitter::RoundToHalf(DType half, const Xmm& x) {
  if (half == DType::kBF16) return RoundToBFloat16(x, x);
  const Xmm t0 = Scratch(0, std::max(16, BitsOf(x) / 2));
  vcvtps2ph(t0, x, 0);
  vcvtph2ps(x, t0);
}

void JitEmitter::RoundToBFloat16(const Xmm& out, const Xmm& x) {
  const int bytes = BitsOf(x);
  const Xmm t0 = Scratch(0, bytes), t1 = Scratch(1, bytes);
  vpsrld(t0, x, 16);
  vandps(t0, t0, Constant32(1));
  vpaddd(t0, t0, Constant32(0x7fff));
  vpaddd(t0, t0, x);
  if (is_avx512()) {
    vcmpps(k1, x, x, kPredicateUnordered);
    vorps(t0 | k1, x, Constant32(0x400000));
  } else {
    const Xmm t2 = Scratch(2, bytes);
    vcmpps(t2, x, x, kPredicateUnordered);
    vorps(t1, x, Constant32(0x400000));
    vblendvps(t0, t0, t1, t2);
  }
  vandps(out, t0, Constant32(0xffff0000));
}

#undef TENSORD_BY_FLOAT

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
