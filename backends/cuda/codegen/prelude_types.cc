#include "backends/cuda/codegen/prelude.h"

namespace tensord {
namespace {

constexpr CudaPiece kTypePieces[] = {
    {"Types", "", R"(typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define TENSORD_FN __device__ __forceinline__
)"},
    {"Complex", "Types", R"(template <typename R>
struct __align__(2 * sizeof(R)) Complex {
  R re, im;
};
typedef Complex<f32> c64;
typedef Complex<f64> c128;
)"},
    {"Vector", "Types", R"(// Neighbours in memory that cross it as one.
template <typename T, int N>
struct __align__(N * sizeof(T)) Vector {
  T at[N];
};
template <int N, typename T>
TENSORD_FN Vector<T, N> LoadVector(const T* from) {
  return *reinterpret_cast<const Vector<T, N>*>(from);
}
template <typename T, int N>
TENSORD_FN void StoreVector(T* to, const Vector<T, N>& x) {
  *reinterpret_cast<Vector<T, N>*>(to) = x;
}
)"},
    {"RaggedVector", "Vector", R"(// The same where only `left` elements may be there.
template <int N, typename T>
TENSORD_FN Vector<T, N> LoadVector(const T* from, i64 left) {
  if (left >= N) return LoadVector<N>(from);
  Vector<T, N> x = {};
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j < left) x.at[j] = from[j];
  }
  return x;
}
template <typename T, int N>
TENSORD_FN void StoreVector(T* to, const Vector<T, N>& x, i64 left) {
  if (left >= N) return StoreVector(to, x);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j < left) to[j] = x.at[j];
  }
}
)"},
    {"F16", "Types", R"(struct F16 {
  u16 bits;
};
#ifndef TENSORD_F16_CONVERSIONS  // else the includer brings its own
TENSORD_FN u16 F16Bits(f32 x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
TENSORD_FN f32 F16Value(u16 bits) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
#endif
TENSORD_FN F16 ToF16(f32 x) { return F16{F16Bits(x)}; }
TENSORD_FN f32 ToFloat(F16 x) { return F16Value(x.bits); }
)"},
    {"BF16", "Types", R"(struct BF16 {
  u16 bits;
};
TENSORD_FN BF16 ToBF16(f32 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // one instruction there
  BF16 rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
  return rounded;
#else
  const u32 bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return BF16{(u16)(bits >> 16 | 0x40u)};
  return BF16{(u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
#endif
}
TENSORD_FN f32 ToFloat(BF16 x) { return __uint_as_float((u32)x.bits << 16); }
)"},
    // Two neighbours in a register, the first in the lower half. Devices round a sum or a product once; by way of F32
    // it is rounded twice, to the same number: F32 has two digits more than twice those of either type.
    {"F16x2", "F16", R"(struct F16x2 {
  u32 bits;
};
TENSORD_FN F16x2 Both(F16 low, F16 high) { return F16x2{(u32)low.bits | (u32)high.bits << 16}; }
TENSORD_FN F16 LowOf(F16x2 x) { return F16{(u16)x.bits}; }
TENSORD_FN F16 HighOf(F16x2 x) { return F16{(u16)(x.bits >> 16)}; }
TENSORD_FN f32 LowFloat(F16x2 x) { return ToFloat(LowOf(x)); }
TENSORD_FN f32 HighFloat(F16x2 x) { return ToFloat(HighOf(x)); }
TENSORD_FN F16x2 ToF16x2(f32 low, f32 high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  F16x2 both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both.bits) : "f"(high), "f"(low));
  return both;
#else
  return Both(ToF16(low), ToF16(high));
#endif
}
#if defined(__CUDA_ARCH__)
#define TENSORD_F16X2(Name, instruction, op)         \
  TENSORD_FN F16x2 Name##F16x2(F16x2 x, F16x2 y) {   \
    F16x2 z;                                         \
    asm(#instruction ".rn.f16x2 %0, %1, %2;"         \
        : "=r"(z.bits)                               \
        : "r"(x.bits), "r"(y.bits));                 \
    return z;                                        \
  }
#else
#define TENSORD_F16X2(Name, instruction, op)              \
  TENSORD_FN F16x2 Name##F16x2(F16x2 x, F16x2 y) {        \
    return ToF16x2(LowFloat(x) op LowFloat(y),            \
                   HighFloat(x) op HighFloat(y));         \
  }
#endif
TENSORD_F16X2(Add, add, +)
TENSORD_F16X2(Subtract, sub, -)
TENSORD_F16X2(Multiply, mul, *)
)"},
    {"BF16x2", "BF16", R"(struct BF16x2 {
  u32 bits;
};
TENSORD_FN BF16x2 Both(BF16 low, BF16 high) { return BF16x2{(u32)low.bits | (u32)high.bits << 16}; }
TENSORD_FN BF16 LowOf(BF16x2 x) { return BF16{(u16)x.bits}; }
TENSORD_FN BF16 HighOf(BF16x2 x) { return BF16{(u16)(x.bits >> 16)}; }
TENSORD_FN f32 LowFloat(BF16x2 x) { return __uint_as_float(x.bits << 16); }
TENSORD_FN f32 HighFloat(BF16x2 x) { return __uint_as_float(x.bits & 0xffff0000u); }
TENSORD_FN BF16x2 ToBF16x2(f32 low, f32 high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  BF16x2 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both.bits) : "f"(high), "f"(low));
  return both;
#else
  return Both(ToBF16(low), ToBF16(high));
#endif
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TENSORD_BF16X2(Name, instruction, op, factor, term) \
  TENSORD_FN BF16x2 Name##BF16x2(BF16x2 x, BF16x2 y) {      \
    BF16x2 z;                                               \
    asm(#instruction ".rn.bf16x2 %0, %1, %2;"               \
        : "=r"(z.bits)                                      \
        : "r"(x.bits), "r"(y.bits));                        \
    return z;                                               \
  }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // there is one instruction, y times a factor and a term
#define TENSORD_BF16X2(Name, instruction, op, factor, term) \
  TENSORD_FN BF16x2 Name##BF16x2(BF16x2 x, BF16x2 y) {      \
    BF16x2 z;                                               \
    asm("fma.rn.bf16x2 %0, %1, %2, %3;"                     \
        : "=r"(z.bits)                                      \
        : "r"(y.bits), "r"(factor), "r"(term));             \
    return z;                                               \
  }
#else
#define TENSORD_BF16X2(Name, instruction, op, factor, term) \
  TENSORD_FN BF16x2 Name##BF16x2(BF16x2 x, BF16x2 y) {      \
    return ToBF16x2(LowFloat(x) op LowFloat(y),             \
                    HighFloat(x) op HighFloat(y));          \
  }
#endif
TENSORD_BF16X2(Add, add, +, 0x3f803f80u, x.bits)       // 1
TENSORD_BF16X2(Subtract, sub, -, 0xbf80bf80u, x.bits)  // -1
TENSORD_BF16X2(Multiply, mul, *, x.bits, 0x80008000u)  // -0
)"},
    {"RoundToOdd", "Types", R"(// Rounding the result again, to 16 bits, gives what one rounding would have given.
TENSORD_FN f32 RoundToOdd(f64 x) {
  const f32 nearest = (f32)x;
  if ((f64)nearest == x || isnan(x) || isinf(x)) return nearest;
  u32 bits = __float_as_uint(nearest);
  if (fabs((f64)nearest) > fabs(x)) --bits;
  return __uint_as_float(bits | 1u);
}
)"},
    {"IntegerToOdd", "Types", R"(// Past 2^53 the low bits are folded into one, so that the double is exact.
TENSORD_FN f64 IntegerToOdd(i64 x) {
  if (x > -(1ll << 53) && x < 1ll << 53) return (f64)x;
  const u64 magnitude = x < 0 ? 0 - (u64)x : (u64)x;
  const f64 folded = (f64)((magnitude >> 12 << 12) | ((magnitude & 0xfffull) != 0 ? 0x1000ull : 0ull));
  return x < 0 ? -folded : folded;
}
)"},
    {"TruncateToI32", "Types", R"(TENSORD_FN i32 TruncateToI32(f64 x) {
  if (isnan(x)) return 0;
  if (x >= 2147483648.0) return 2147483647;
  if (x < -2147483648.0) return -2147483647 - 1;
  return (i32)x;
}
)"},
    {"TruncateToI64", "Types", R"(TENSORD_FN i64 TruncateToI64(f64 x) {
  if (isnan(x)) return 0;
  if (x >= 9223372036854775808.0) return 9223372036854775807ll;
  if (x < -9223372036854775808.0) return -9223372036854775807ll - 1;
  return (i64)x;
}
)"},
};

}  // namespace

absl::Span<const CudaPiece> CudaTypePieces() { return kTypePieces; }

}  // namespace tensord
