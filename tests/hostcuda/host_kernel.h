#ifndef TENSORD_TESTS_HOSTCUDA_HOST_KERNEL_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_KERNEL_H_

// CUDA C++ as ordinary C++: stands before a kernel's text when the host's compiler makes a library of it. Includes no
// headers of the system, so that a kernel compiles in a few hundredths of a second.

#include "tests/hostcuda/host_services.h"

typedef __SIZE_TYPE__ size_t;

static HostState host_state;

#define threadIdx host_state.thread
#define blockIdx host_state.block
#define blockDim host_state.block_size
#define gridDim host_state.grid_size

#define __device__
#define __global__
#define __constant__ static
#define __shared__ static
#define __restrict__ __restrict
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
// Functions that the checks do not look into.
#define HOST_UNCHECKED __attribute__((noinline, no_sanitize("thread")))

// ---- functions of CUDA's mathematics ----

#define HOST_MATH_1(name)                                       \
  inline float name(float x) { return __builtin_##name##f(x); } \
  inline double name(double x) { return __builtin_##name(x); }
#define HOST_MATH_2(name)                                                   \
  inline float name(float x, float y) { return __builtin_##name##f(x, y); } \
  inline double name(double x, double y) { return __builtin_##name(x, y); }
HOST_MATH_1(exp)
HOST_MATH_1(exp2)
HOST_MATH_1(expm1)
HOST_MATH_1(log)
HOST_MATH_1(log2)
HOST_MATH_1(log10)
HOST_MATH_1(log1p)
HOST_MATH_1(sin)
HOST_MATH_1(cos)
HOST_MATH_1(tan)
HOST_MATH_1(sinh)
HOST_MATH_1(cosh)
HOST_MATH_1(tanh)
HOST_MATH_1(asin)
HOST_MATH_1(acos)
HOST_MATH_1(atan)
HOST_MATH_1(asinh)
HOST_MATH_1(acosh)
HOST_MATH_1(atanh)
HOST_MATH_1(sqrt)
HOST_MATH_1(cbrt)
HOST_MATH_1(erf)
HOST_MATH_1(erfc)
HOST_MATH_1(lgamma)
HOST_MATH_1(tgamma)
HOST_MATH_1(floor)
HOST_MATH_1(ceil)
HOST_MATH_1(rint)
HOST_MATH_1(trunc)
HOST_MATH_1(fabs)
HOST_MATH_1(logb)
HOST_MATH_2(pow)
HOST_MATH_2(atan2)
HOST_MATH_2(fmod)
HOST_MATH_2(copysign)
HOST_MATH_2(hypot)
HOST_MATH_2(fmax)
HOST_MATH_2(fmin)
HOST_MATH_2(nextafter)
inline int ilogb(float x) { return __builtin_ilogbf(x); }
inline int ilogb(double x) { return __builtin_ilogb(x); }
inline float scalbn(float x, int n) { return __builtin_scalbnf(x, n); }
inline double scalbn(double x, int n) { return __builtin_scalbn(x, n); }
inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
inline double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1 / __builtin_sqrt(x); }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }
inline int abs(int x) { return __builtin_abs(x); }
inline long long abs(long long x) { return __builtin_llabs(x); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline void sincos(float x, float* s, float* c) { *s = sin(x), *c = cos(x); }
inline void sincos(double x, double* s, double* c) { *s = sin(x), *c = cos(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}

template <typename To, typename From>
inline To HostBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}
inline unsigned __float_as_uint(float x) { return HostBits<unsigned>(x); }
inline int __float_as_int(float x) { return HostBits<int>(x); }
inline float __uint_as_float(unsigned x) { return HostBits<float>(x); }
inline float __int_as_float(int x) { return HostBits<float>(x); }
inline double __longlong_as_double(long long x) { return HostBits<double>(x); }
inline long long __double_as_longlong(double x) { return HostBits<long long>(x); }
template <typename T>
inline T __ldg(const T* at) {
  return *at;
}

// In place of the prelude's pieces of machine code: 16-bit floats, rounded to the nearest, ties to even.
#define TENSORD_F16_CONVERSIONS
inline float F16Value(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) return __uint_as_float(sign | __float_as_uint((float)magnitude * 0x1p-24f));
  return __uint_as_float(sign | ((magnitude << 13) + 0x38000000u));
}
inline unsigned short F16Bits(float x) {
  const unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (unsigned short)(sign | 0x7fffu);
  if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    return (unsigned short)(sign | (unsigned)__builtin_rintf(__uint_as_float(magnitude) * 0x1p24f));
  }
  return (unsigned short)(sign | ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}

// ---- threads together ----

// Returns the thread's place in its block; 32 in a row are a warp.
inline unsigned HostThread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

inline void __syncthreads() { host_state.services->wait(kHostBarrier); }
inline void __syncwarp(unsigned = 0xffffffffu) { host_state.services->wait(kHostWarp); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// Returns the value that the thread at place `from` of the block gave.
template <typename T>
inline T HostShuffle(T x, unsigned from) {
  static_assert(sizeof(T) <= 8);
  unsigned long long* words = host_state.services->shuffle_words();
  __builtin_memcpy(&words[HostThread()], &x, sizeof(T));
  host_state.services->wait(kHostWarp);
  T got;
  __builtin_memcpy(&got, &words[from], sizeof(T));
  host_state.services->wait(kHostWarp);
  return got;
}
template <typename T>
inline T __shfl_xor_sync(unsigned, T x, int mask) {
  return HostShuffle(x, HostThread() ^ (unsigned)mask);
}
template <typename T>
inline T __shfl_down_sync(unsigned, T x, unsigned delta) {
  const unsigned thread = HostThread();
  return HostShuffle(x, (thread & 31u) + delta < 32u ? thread + delta : thread);
}
template <typename T>
inline T __shfl_up_sync(unsigned, T x, unsigned delta) {
  const unsigned thread = HostThread();
  return HostShuffle(x, (thread & 31u) >= delta ? thread - delta : thread);
}
template <typename T>
inline T __shfl_sync(unsigned, T x, int lane) {
  return HostShuffle(x, (HostThread() & ~31u) | ((unsigned)lane & 31u));
}
// Returns a bit for each thread of the warp; those that the block does not have are 0.
inline unsigned __ballot_sync(unsigned, int is_set) {
  const unsigned thread = HostThread(), first = thread & ~31u;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  unsigned long long* words = host_state.services->shuffle_words();
  words[thread] = is_set != 0;
  host_state.services->wait(kHostWarp);
  unsigned bits = 0;
  for (unsigned t = first; t < first + 32u && t < threads; ++t) bits |= (unsigned)words[t] << (t - first);
  host_state.services->wait(kHostWarp);
  return bits;
}
inline int __any_sync(unsigned mask, int is_set) { return __ballot_sync(mask, is_set) != 0; }
inline int __all_sync(unsigned mask, int is_set) { return __ballot_sync(mask, is_set == 0) == 0; }

// ---- atomics ----

// Applies `f` to a place in memory, of which no other kernel's thread sees a half.
template <typename T, typename F>
HOST_UNCHECKED T HostAtomic(T* at, F f) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  if (host_state.services->access != nullptr) {
    host_state.services->access(at, sizeof(T), kHostAtomic, __builtin_return_address(0));
  }
  T was, next;
  __atomic_load(at, &was, __ATOMIC_RELAXED);
  do {
    next = f(was);
  } while (!__atomic_compare_exchange(at, &was, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return was;
}
#define HOST_ATOMIC(name, value)                                \
  template <typename T>                                         \
  inline T name(T* at, T x) {                                   \
    return HostAtomic(at, [x](T was) -> T { return (value); }); \
  }
HOST_ATOMIC(atomicAdd, was + x)
HOST_ATOMIC(atomicSub, was - x)
HOST_ATOMIC(atomicMin, x < was ? x : was)
HOST_ATOMIC(atomicMax, x > was ? x : was)
HOST_ATOMIC(atomicAnd, was& x)
HOST_ATOMIC(atomicOr, was | x)
HOST_ATOMIC(atomicXor, was ^ x)
HOST_ATOMIC(atomicExch, (static_cast<void>(was), x))
template <typename T>
inline T atomicCAS(T* at, T expected, T x) {
  return HostAtomic(at, [expected, x](T was) -> T { return was == expected ? x : was; });
}

// ---- arguments ----

// Returns the pointer to a device address that a kernel has read from memory. Pointers among its own parameters are
// translated before it starts.
template <typename T>
inline T* HostPointer(unsigned long long address) {
  return static_cast<T*>(host_state.services->reveal(address));
}

template <typename T>
struct HostIsPointer {
  static constexpr unsigned kValue = 0;
};
template <typename T>
struct HostIsPointer<T*> {
  static constexpr unsigned kValue = 1;
};
template <size_t... I>
struct HostIndices {};
#if __has_builtin(__make_integer_seq)
template <typename T, T... I>
struct HostIndicesOf {
  using Type = HostIndices<I...>;
};
template <size_t n>
using HostIndicesTo = typename __make_integer_seq<HostIndicesOf, size_t, n>::Type;
#else
template <size_t n>
using HostIndicesTo = HostIndices<__integer_pack(n)...>;
#endif

template <typename F>
struct HostSignature;
template <typename... A>
struct HostSignature<void (*)(A...)> {
  struct Parameters {
    HostParameter list[sizeof...(A) + 1] = {{sizeof(A), HostIsPointer<A>::kValue}..., {0, 0}};
  };
  template <size_t... I>
  static void Call(void (*kernel)(A...), void** arguments, HostIndices<I...>) {
    kernel(*static_cast<A*>(arguments[I])...);
  }
  static void Call(void (*kernel)(A...), void** arguments) { Call(kernel, arguments, HostIndicesTo<sizeof...(A)>{}); }
};

#define HOST_EXPORT extern "C" __attribute__((visibility("default")))
HOST_EXPORT HostState* hostcuda_state() { return &host_state; }
// Exports a kernel of the text at `place`: a run of the present thread, and the list of its parameters.
#define HOST_KERNEL(place, name)                                            \
  HOST_EXPORT void hostcuda_run_##place##_##name(void** arguments) {        \
    HostSignature<decltype(&name)>::Call(&name, arguments);                 \
  }                                                                         \
  HOST_EXPORT const HostParameter* hostcuda_parameters_##place##_##name() { \
    static constexpr HostSignature<decltype(&name)>::Parameters parameters; \
    return parameters.list;                                                 \
  }

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_KERNEL_H_
