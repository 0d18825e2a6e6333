// Division of integers by a constant: a multiplication and a shift (AVX-512). The numbers are those of
// backends/cpu/math/integer_quotients-inl.h.
#if TENSORD_HAS_JIT

#include <cstring>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/math/integer_reciprocal.h"

namespace tensord::cpu {
namespace {

template <typename T>
T DivisorOf(const JitNode& constant) {
  T divisor;
  std::memcpy(&divisor, constant.constant.data(), sizeof(divisor));
  return divisor;
}

}  // namespace

void JitEmitter::EmitDivision(CoreOp op, DType dtype, const Xmm& out, const Xmm& a, const JitNode& constant) {
  const int bytes = BitsOf(out);
  const Xmm size = Scratch(0, bytes), quotient = Scratch(1, bytes);
  const bool is_long = dtype == DType::kI64;
  const int64_t divisor = is_long ? DivisorOf<int64_t>(constant) : DivisorOf<int32_t>(constant);
  if (is_long) {
    EmitLongQuotient(IntegerReciprocal<int64_t>(divisor), size, quotient, a);
    vpsraq(size, a, 63);
  } else {
    EmitQuotient(IntegerReciprocal<int32_t>(static_cast<int32_t>(divisor)), size, quotient, a);
    vpsrad(size, a, 31);
  }
  const Xmm& sign = size;
  if (divisor < 0) vpxorq(sign, sign, Constant(~uint64_t{0}, 0, 8));
  vpxorq(quotient, quotient, sign);
  const Xmm& signed_quotient = op == CoreOp::kDivide ? out : quotient;
  if (is_long) {
    vpsubq(signed_quotient, quotient, sign);
  } else {
    vpsubd(signed_quotient, quotient, sign);
  }
  if (op == CoreOp::kDivide) return;
  if (is_long) {
    vpmullq(quotient, quotient, Constant(static_cast<uint64_t>(divisor), 0, 8));
    return vpsubq(out, a, quotient);
  }
  vpmulld(quotient, quotient, Constant32(static_cast<uint32_t>(divisor)));
  vpsubd(out, a, quotient);
}

// Emits the quotient |a| / |divisor|; `size` is for the way.
void JitEmitter::EmitQuotient(const IntegerReciprocal<int32_t>& reciprocal, const Xmm& size, const Xmm& quotient,
                              const Xmm& a) {
  const Xbyak::Address factor = Constant(reciprocal.factor, 0, 8);
  vpabsd(size, a);
  vpsrlq(quotient, size, 32);
  vpmuludq(size, size, factor);
  vpmuludq(quotient, quotient, factor);
  vpsrlq(size, size, 32);
  vpandq(quotient, quotient, Constant(~uint64_t{0} << 32, 0, 8));
  vporq(quotient, quotient, size);
  if (reciprocal.shift > 0) vpsrld(quotient, quotient, static_cast<uint8_t>(reciprocal.shift));
}

// The upper half of a product, by the halves of both factors.
void JitEmitter::EmitLongQuotient(const IntegerReciprocal<int64_t>& reciprocal, const Xmm& size, const Xmm& quotient,
                                  const Xmm& a) {
  const Xmm first = Scratch(2, BitsOf(a)), second = Scratch(3, BitsOf(a));
  const Xbyak::Address low = Constant(reciprocal.factor & 0xffffffff, 0, 8),
                       high = Constant(reciprocal.factor >> 32, 0, 8);
  vpabsq(size, a);
  vpsrlq(quotient, size, 32);
  vpmuludq(first, size, low);
  vpmuludq(second, quotient, low);
  vpsrlq(first, first, 32);
  vpaddq(first, first, second);
  vpmuludq(second, size, high);
  vpandq(size, first, Constant(0xffffffff, 0, 8));
  vpmuludq(quotient, quotient, high);
  vpaddq(second, second, size);
  vpsrlq(first, first, 32);
  vpsrlq(second, second, 32);
  vpaddq(quotient, quotient, first);
  vpaddq(quotient, quotient, second);
  if (reciprocal.shift > 0) vpsrlq(quotient, quotient, static_cast<uint8_t>(reciprocal.shift));
}

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
