// Constants, registers, and values from and to memory.
#if TENSORD_HAS_JIT

#include <bit>

#include "backends/cpu/jit/emitter.h"

namespace tensord::cpu {

JitEmitter::Xmm JitEmitter::Register(int index, int bytes) const {
  using Kind = Xbyak::Operand::Kind;
  const Kind kind = bytes <= 16 ? Xbyak::Operand::XMM : bytes <= 32 ? Xbyak::Operand::YMM : Xbyak::Operand::ZMM;
  return Xmm(kind, index);
}

Xbyak::Address JitEmitter::Constant(uint64_t low, uint64_t high, int element_bytes) {
  for (const PooledConstant& constant : constants_) {
    if (constant.low == low && constant.high == high && constant.element_bytes == element_bytes) {
      return ptr[rip + constant.label];
    }
  }
  constants_.push_back({low, high, element_bytes, Xbyak::Label()});
  return ptr[rip + constants_.back().label];
}

Xbyak::Address JitEmitter::FloatConstant(DType dtype, double value) {
  if (IsDouble(dtype)) return Constant(std::bit_cast<uint64_t>(value), 0, 8);
  return Constant32(std::bit_cast<uint32_t>(static_cast<float>(value)));
}

Xbyak::Address JitEmitter::LaneConstant(DType dtype, uint32_t bits32, uint64_t bits64) {
  const bool is_wide = dtype == DType::kF64 || dtype == DType::kI64;
  return is_wide ? Constant(bits64, 0, 8) : Constant32(bits32);
}

Xbyak::Address JitEmitter::Vector(const void* bytes) {
  for (const PooledVector& vector : vectors_) {
    if (vector.bytes == bytes) return ptr[rip + vector.label];
  }
  vectors_.push_back({bytes, Xbyak::Label()});
  return ptr[rip + vectors_.back().label];
}

void JitEmitter::WriteConstants() {
  align(64);
  for (PooledVector& vector : vectors_) {
    L(vector.label);
    db(static_cast<const uint8_t*>(vector.bytes), static_cast<size_t>(VectorBytes(isa_)));
  }
  for (PooledConstant& constant : constants_) {
    L(constant.label);
    for (int i = 0; i < VectorBytes(isa_); i += constant.element_bytes) {
      if (constant.element_bytes == 4) {
        dd(static_cast<uint32_t>(constant.low));
        continue;
      }
      dq(constant.low);
      if (constant.element_bytes == 16) dq(constant.high);
    }
  }
}

void JitEmitter::EmitLoad(DType dtype, const Xmm& out, const Xbyak::Address& from) {
  switch (dtype) {
    case DType::kBool:
      mask_bytes_ == 8 ? vpmovzxbq(out, from) : vpmovzxbd(out, from);
      if (is_avx512()) {
        mask_bytes_ == 8 ? vptestmq(k1, out, out) : vptestmd(k1, out, out);
        return MaskToValue(out, k1);
      } else {
        const Xmm zero = Scratch(0, BitsOf(out));
        vxorps(zero, zero, zero);
        mask_bytes_ == 8 ? vpcmpgtq(out, out, zero) : vpcmpgtd(out, out, zero);  // bytes are not negative here
        return;
      }
    case DType::kF16:
      return vcvtph2ps(out, from);
    case DType::kBF16:
      vpmovzxwd(out, from);
      return vpslld(out, out, 16);
    default:
      return SizeOf(dtype) == 8 ? vmovupd(out, from) : vmovups(out, from);  // as masks count
  }
}

void JitEmitter::EmitPartialLoad(DType dtype, const Xmm& out, const Xbyak::Address& from) {
  if (dtype != DType::kBool) return EmitLoad(dtype, out | k7 | T_z, from);
  mask_bytes_ == 8 ? vpmovzxbq(out | k7 | T_z, from) : vpmovzxbd(out | k7 | T_z, from);
  mask_bytes_ == 8 ? vptestmq(k1, out, out) : vptestmd(k1, out, out);
  MaskToValue(out, k1);
}

void JitEmitter::EmitStore(DType dtype, const Xbyak::Address& to, const Xmm& x) {
  const Xmm t0 = Scratch(0, BitsOf(x)), t1 = Scratch(1, 16);
  const Xmm low(t0.getIdx());
  const Xbyak::Ymm whole(t0.getIdx());
  switch (dtype) {
    case DType::kBool:
      mask_bytes_ == 8 ? vpsrlq(t0, x, 63) : vpsrld(t0, x, 31);
      if (is_avx512()) return mask_bytes_ == 8 ? vpmovqb(to, t0) : vpmovdb(to, t0);
      vextracti128(t1, whole, 1);
      if (mask_bytes_ == 8) {
        vshufps(low, low, t1, 0x88);
        vpackssdw(low, low, low);
        vpacksswb(low, low, low);
        return vmovd(to, low);
      }
      vpackssdw(low, low, t1);
      vpacksswb(low, low, low);
      return vmovq(to, low);
    case DType::kF16:
      return vcvtps2ph(to, x, 0);
    case DType::kBF16:
      vpsrld(t0, x, 16);
      if (is_avx512()) return vpmovdw(to, t0);
      if (BitsOf(x) == 16) {
        vpackusdw(low, low, low);
        return vmovq(to, low);
      }
      vextracti128(t1, whole, 1);
      vpackusdw(low, low, t1);
      return vmovups(to, low);
    default:
      return SizeOf(dtype) == 8 ? vmovupd(to, x) : vmovups(to, x);
  }
}

void JitEmitter::EmitBroadcast(DType dtype, const Xmm& out, const Xbyak::Reg64& pointer) {
  const Xmm low(out.getIdx());
  switch (dtype) {
    case DType::kBool:
      movzx(eax, byte[pointer]);
      neg(eax);
      sbb(eax, eax);  // all bits where it was not 0
      vmovd(low, eax);
      return vpbroadcastd(out, low);
    case DType::kF16:
    case DType::kBF16:
      movzx(eax, word[pointer]);
      if (dtype == DType::kBF16) shl(eax, 16);
      vmovd(low, eax);
      if (dtype == DType::kF16) vcvtph2ps(low, low);
      return vbroadcastss(out, low);
    case DType::kI32:
    case DType::kF32:
      return vbroadcastss(out, ptr[pointer]);
    case DType::kC128:
      if (!is_avx512()) return vbroadcastf128(Xbyak::Ymm(out.getIdx()), ptr[pointer]);
      return vbroadcastf64x2(Xbyak::Zmm(out.getIdx()), ptr[pointer]);
    default:
      return vpbroadcastq(out, ptr[pointer]);
  }
}

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
