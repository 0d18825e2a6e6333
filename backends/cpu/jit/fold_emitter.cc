#if TENSORD_HAS_JIT

#include "backends/cpu/jit/fold_emitter.h"

#include <algorithm>
#include <cmath>

namespace tensord::cpu {

using Xbyak::Address;

void JitFoldEmitter::Combine(const JitNode& fold, bool is_guarded, bool is_partial, const Xmm& out, const Xmm& a,
                             const Xmm& b) {
  const Xmm to = is_partial ? out | k7 : out;
  if (is_guarded) {
    const uint8_t range = fold.op == CoreOp::kMaximum ? 5 : 4;
    return fold.dtype == DType::kF64 ? vrangepd(to, a, b, range) : vrangeps(to, a, b, range);
  }
  JitNode op{.kind = JitNode::Kind::kOp,
             .dtype = fold.dtype,
             .computed = fold.dtype,
             .op_kind = MicroKind::kBinary,
             .op = fold.op};
  const JitNode value{.kind = JitNode::Kind::kOp, .dtype = fold.dtype};
  Operands in;
  in[0] = {.reg = a, .node = &value};
  in[1] = {.reg = b, .node = &value};
  EmitOp(op, to, in);
}

void JitFoldEmitter::AddGuard(const JitNode& fold, bool is_partial, const Xmm& out, const Xmm& a, const Xmm& b) {
  const Xmm to = is_partial ? out | k7 : out;
  fold.dtype == DType::kF64 ? vaddpd(to, a, b) : vaddps(to, a, b);
}

Address JitFoldEmitter::StartOf(const JitNode& fold) {
  const bool is_max = fold.op == CoreOp::kMaximum;
  if (kLaneFloats.Contains(fold.dtype)) {
    if (fold.op == CoreOp::kAdd) return FloatConstant(fold.dtype, -0.0);
    if (fold.op == CoreOp::kMultiply) return FloatConstant(fold.dtype, 1);
    return FloatConstant(fold.dtype, is_max ? -INFINITY : INFINITY);
  }
  if (fold.op == CoreOp::kAdd) return LaneConstant(fold.dtype, 0, 0);
  if (fold.op == CoreOp::kMultiply) return LaneConstant(fold.dtype, 1, 1);
  return is_max ? LaneConstant(fold.dtype, uint32_t{1} << 31, uint64_t{1} << 63)
                : LaneConstant(fold.dtype, ~uint32_t{0} >> 1, ~uint64_t{0} >> 1);
}

// The upper half of a vector of `bytes`, or each second one of the lanes that are `bytes` / 2 long.
void JitFoldEmitter::UpperHalf(const Xmm& out, const Xmm& x, int bytes) {
  const Xbyak::Zmm from(x.getIdx());
  if (bytes == 64) return vextractf64x4(Xbyak::Ymm(out.getIdx()), from, 1);
  if (bytes == 32) return vextractf32x4(Xmm(out.getIdx()), Xbyak::Ymm(x.getIdx()), 1);
  const Xmm to(out.getIdx()), low(x.getIdx());
  bytes == 16 ? vpermilpd(to, low, 1) : vpshufd(to, low, 1);
}

void JitFoldEmitter::FoldHalves(const JitNode& fold, bool is_guarded, const Xmm& x, const Xmm& other) {
  for (int bytes = 64; bytes > SizeOf(fold.dtype); bytes /= 2) {
    UpperHalf(other, x, bytes);
    const int half = std::max(16, bytes / 2);
    const Xmm low = Register(x.getIdx(), half);
    Combine(fold, is_guarded, false, low, low, Register(other.getIdx(), half));
  }
}

// Lanes by neighbouring lanes, as often as it takes; the identity before them.
void JitFoldEmitter::FoldNeighbours(const JitNode& fold, bool is_guarded, const Xmm& x, const Xmm& other_lanes) {
  const DType dtype = fold.dtype;
  const Xbyak::Zmm all(x.getIdx()), other(other_lanes.getIdx());
  for (int bytes = static_cast<int>(SizeOf(dtype)); bytes < 64; bytes *= 2) {
    if (bytes == 4) vpshufd(other, all, 0xb1);
    if (bytes == 8) vpshufd(other, all, 0x4e);
    if (bytes == 16) vshuff64x2(other, all, all, 0xb1);
    if (bytes == 32) vshuff64x2(other, all, all, 0x4e);
    Combine(fold, is_guarded, false, all, all, other);
  }
  if (fold.op != CoreOp::kAdd || !kLaneFloats.Contains(dtype)) return;
  const Address zero = FloatConstant(dtype, 0);
  dtype == DType::kF64 ? vaddpd(all, all, zero) : vaddps(all, all, zero);
}

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
