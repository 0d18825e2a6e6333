#include "backends/cuda/codegen/prelude.h"
#include "backends/cuda/codegen/prelude_wide.h"

namespace tensord {
namespace {

constexpr CudaPiece kComplexPieces[] = {
    {"EqualComplex", "Complex", R"(template <typename R>
TENSORD_FN bool EqualComplex(Complex<R> a, Complex<R> b) {
  return a.re == b.re && a.im == b.im;
}
)"},
    {"IsNanComplex", "Complex", R"(template <typename R>
TENSORD_FN bool IsNanComplex(Complex<R> z) {
  return isnan(z.re) || isnan(z.im);
}
)"},
    {"NegateComplex", "Complex", R"(template <typename R>
TENSORD_FN Complex<R> NegateComplex(Complex<R> z) {
  return Complex<R>{-z.re, -z.im};
}
)"},
    {"ConjComplex", "Complex", R"(template <typename R>
TENSORD_FN Complex<R> ConjComplex(Complex<R> z) {
  return Complex<R>{z.re, -z.im};
}
)"},
    {"RealPartComplex", "Complex", R"(template <typename R>
TENSORD_FN R RealPartComplex(Complex<R> z) {
  return z.re;
}
)"},
    {"ImagPartComplex", "Complex", R"(template <typename R>
TENSORD_FN R ImagPartComplex(Complex<R> z) {
  return z.im;
}
)"},
    {"AbsComplex", "Complex", R"(template <typename R>
TENSORD_FN R AbsComplex(Complex<R> z) {
  return hypot(z.re, z.im);
}
)"},
    {"AddComplex", "Complex", R"(template <typename R>
TENSORD_FN Complex<R> AddComplex(Complex<R> a, Complex<R> b) {
  return Complex<R>{a.re + b.re, a.im + b.im};
}
)"},
    {"SubtractComplex", "Complex", R"(template <typename R>
TENSORD_FN Complex<R> SubtractComplex(Complex<R> a, Complex<R> b) {
  return Complex<R>{a.re - b.re, a.im - b.im};
}
)"},
    {"MultiplyComplex", "Complex", R"(template <typename R>
TENSORD_FN Complex<R> MultiplyComplex(Complex<R> a, Complex<R> b) {
  return Complex<R>{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
)"},
    {"DivideWide", "Complex", R"(// Scaled, so that no intermediate overflows; infinities as C's Annex G recovers them.
static __device__ __noinline__ c128 DivideWide(c128 a, c128 b) {
  const f64 larger_b = fmax(fabs(b.re), fabs(b.im)), larger_a = fmax(fabs(a.re), fabs(a.im));
  const bool scales_b = larger_b > 0 && isfinite(larger_b), scales_a = larger_a > 0 && isfinite(larger_a);
  const int eb = scales_b ? ilogb(larger_b) : 0, ea = scales_a ? ilogb(larger_a) : 0;
  const f64 c = scalbn(b.re, -eb), d = scalbn(b.im, -eb), x = scalbn(a.re, -ea), y = scalbn(a.im, -ea);
  const f64 norm = c * c + d * d;
  f64 re = scalbn((x * c + y * d) / norm, ea - eb), im = scalbn((y * c - x * d) / norm, ea - eb);
  if (isnan(re) && isnan(im)) {
    const f64 infinity = __longlong_as_double(0x7ff0000000000000ll);
    if (norm == 0 && (!isnan(x) || !isnan(y))) {
      re = copysign(infinity, c) * x;
      im = copysign(infinity, c) * y;
    } else if ((isinf(x) || isinf(y)) && isfinite(c) && isfinite(d)) {
      const f64 p = copysign(isinf(x) ? 1.0 : 0.0, x), q = copysign(isinf(y) ? 1.0 : 0.0, y);
      re = infinity * (p * c + q * d);
      im = infinity * (q * c - p * d);
    } else if ((isinf(c) || isinf(d)) && isfinite(x) && isfinite(y)) {
      const f64 p = copysign(isinf(c) ? 1.0 : 0.0, c), q = copysign(isinf(d) ? 1.0 : 0.0, d);
      re = 0.0 * (x * p + y * q);
      im = 0.0 * (y * p - x * q);
    }
  }
  return c128{re, im};
}
)"},
    {"DivideComplex", "DivideWide", R"(template <typename R>
TENSORD_FN Complex<R> DivideComplex(Complex<R> a, Complex<R> b) {
  const c128 w = DivideWide(c128{(f64)a.re, (f64)a.im}, c128{(f64)b.re, (f64)b.im});
  return Complex<R>{(R)w.re, (R)w.im};
}
)"},
    {"MaximumComplex", "IsNanComplex", R"(template <typename R>
TENSORD_FN Complex<R> MaximumComplex(Complex<R> a, Complex<R> b) {
  if (IsNanComplex(a)) return Complex<R>{a.re + a.im, a.re + a.im};
  if (IsNanComplex(b)) return Complex<R>{b.re + b.im, b.re + b.im};
  if (a.re != b.re) return a.re > b.re ? a : b;
  return a.im >= b.im ? a : b;
}
)"},
    {"MinimumComplex", "IsNanComplex", R"(template <typename R>
TENSORD_FN Complex<R> MinimumComplex(Complex<R> a, Complex<R> b) {
  if (IsNanComplex(a)) return Complex<R>{a.re + a.im, a.re + a.im};
  if (IsNanComplex(b)) return Complex<R>{b.re + b.im, b.re + b.im};
  if (a.re != b.re) return a.re < b.re ? a : b;
  return a.im <= b.im ? a : b;
}
)"},
    {"ScaleForModulus", "Complex",
     R"(// A power of eight that z can be multiplied by so that its modulus neither overflows nor loses digits.
TENSORD_FN f64 ScaleForModulus(c128 z) {
  const f64 size = fmax(fabs(z.re), fabs(z.im));
  return size < 0x1p-900 ? 0x1p600 : size > 0x1p1000 ? 0x1p-600 : 1.0;
}
)"},
    {"SignWide", "ScaleForModulus", R"(static __device__ __noinline__ c128 SignWide(c128 z) {
  if (isnan(z.re) || isnan(z.im)) return c128{z.re + z.im, z.re + z.im};
  if (z.re == 0 && z.im == 0) return z;
  const f64 scale = ScaleForModulus(z);
  const f64 re = z.re * scale, im = z.im * scale, modulus = hypot(re, im);
  return c128{re / modulus, im / modulus};
}
)"},
    {"ExpWide", "Complex", R"(static __device__ __noinline__ c128 ExpWide(c128 z) {
  if (z.im == 0) return c128{exp(z.re), z.im};
  if (!isfinite(z.im) && isinf(z.re)) return z.re < 0 ? c128{0.0, 0.0} : c128{z.re, z.im - z.im};
  // e^x may be too large where e^x cos y is not.
  const bool is_large = z.re > 709;
  const f64 modulus = exp(is_large ? z.re - 1 : z.re), rest = is_large ? 0x1.5bf0a8b145769p+1 : 1.0;
  f64 sine, cosine;
  sincos(z.im, &sine, &cosine);
  return c128{modulus * cosine * rest, modulus * sine * rest};
}
)"},
    {"LogWide", "Complex", R"(static __device__ __noinline__ c128 LogWide(c128 z) {
  const f64 x = fmax(fabs(z.re), fabs(z.im)), y = fmin(fabs(z.re), fabs(z.im));
  f64 modulus;
  if (x > 0.5 && x < 1.5) {
    modulus = log1p((x - 1) * (x + 1) + y * y) / 2;
  } else if (x > 0x1p1000 && isfinite(x)) {
    modulus = log(hypot(x * 0x1p-2, y * 0x1p-2)) + 0x1.62e42fefa39efp+0;
  } else if (x < 0x1p-900) {
    modulus = log(hypot(x * 0x1p200, y * 0x1p200)) - 200 * 0x1.62e42fefa39efp-1;
  } else {
    modulus = log(hypot(x, y));
  }
  if (isnan(z.re) || isnan(z.im)) modulus = isinf(z.re) || isinf(z.im) ? log(hypot(z.re, z.im)) : z.re + z.im;
  return c128{modulus, atan2(z.im, z.re)};
}
)"},
    {"Hyperbolic", "Types", R"(// sinh and cosh of x, both divided by `*scale`, so that they do not overflow alone.
TENSORD_FN void Hyperbolic(f64 x, f64* sine, f64* cosine, f64* scale) {
  if (fabs(x) < 709) {
    *sine = sinh(x);
    *cosine = cosh(x);
    *scale = 1.0;
  } else {
    *cosine = exp(fabs(x) - 1) / 2;
    *sine = copysign(*cosine, x);
    *scale = 0x1.5bf0a8b145769p+1;
  }
}
)"},
    {"SinWide", "Complex Hyperbolic", R"(static __device__ __noinline__ c128 SinWide(c128 z) {
  if (z.im == 0) return c128{sin(z.re), z.im * cos(z.re)};
  if (z.re == 0) return c128{z.re, sinh(z.im)};
  f64 sine, cosine, sinh_y, cosh_y, scale;
  sincos(z.re, &sine, &cosine);
  Hyperbolic(z.im, &sinh_y, &cosh_y, &scale);
  return c128{sine * cosh_y * scale, cosine * sinh_y * scale};
}
)"},
    {"CosWide", "Complex Hyperbolic", R"(static __device__ __noinline__ c128 CosWide(c128 z) {
  if (z.im == 0) return c128{cos(z.re), -sin(z.re) * z.im};
  if (z.re == 0) return c128{cosh(z.im), -z.re * z.im};
  f64 sine, cosine, sinh_y, cosh_y, scale;
  sincos(z.re, &sine, &cosine);
  Hyperbolic(z.im, &sinh_y, &cosh_y, &scale);
  return c128{cosine * cosh_y * scale, -(sine * sinh_y) * scale};
}
)"},
    {"TanhWide", "Complex", R"(static __device__ __noinline__ c128 TanhWide(c128 z) {
  f64 sine, cosine;
  sincos(z.im, &sine, &cosine);
  if (fabs(z.re) > 22) {  // the real part is 1 in every digit
    const f64 e = exp(-fabs(z.re));
    const f64 im = isfinite(z.im) ? 4 * sine * cosine * e * e : 0.0;
    return c128{copysign(1.0, z.re), im};
  }
  const f64 sinh_x = sinh(z.re), cosh_x = cosh(z.re);
  const f64 norm = fabs(sinh_x) > 0x1p-500 ? sinh_x * sinh_x + cosine * cosine : cosine * cosine;
  return c128{sinh_x * cosh_x / norm, sine * cosine / norm};
}
)"},
    {"TanWide", "TanhWide", R"(static __device__ __noinline__ c128 TanWide(c128 z) {
  const c128 turned = TanhWide(c128{-z.im, z.re});  // tan z = -i tanh(i z)
  return c128{turned.im, -turned.re};
}
)"},
    {"SinhWide", "Complex Hyperbolic", R"(static __device__ __noinline__ c128 SinhWide(c128 z) {
  if (z.im == 0) return c128{sinh(z.re), z.im};
  if (z.re == 0) return c128{z.re, sin(z.im)};
  if (isinf(z.re) && !isfinite(z.im)) return c128{z.re, z.im - z.im};
  f64 sine, cosine, sinh_x, cosh_x, scale;
  sincos(z.im, &sine, &cosine);
  Hyperbolic(z.re, &sinh_x, &cosh_x, &scale);
  return c128{sinh_x * cosine * scale, cosh_x * sine * scale};
}
)"},
    {"CoshWide", "Complex Hyperbolic", R"(static __device__ __noinline__ c128 CoshWide(c128 z) {
  if (z.im == 0) return c128{cosh(z.re), z.im * copysign(1.0, z.re)};
  if (!isfinite(z.im) && z.re == 0) return c128{z.im - z.im, z.re};
  if (z.re == 0) return c128{cos(z.im), z.re * sin(z.im)};
  if (isinf(z.re) && !isfinite(z.im)) return c128{fabs(z.re), z.im - z.im};
  f64 sine, cosine, sinh_x, cosh_x, scale;
  sincos(z.im, &sine, &cosine);
  Hyperbolic(z.re, &sinh_x, &cosh_x, &scale);
  return c128{cosh_x * cosine * scale, sinh_x * sine * scale};
}
)"},
    {"SqrtWide", "Complex", R"(static __device__ __noinline__ c128 SqrtWide(c128 z) {
  if (isinf(z.im)) return c128{fabs(z.im), z.im};
  if (z.re == 0 && z.im == 0) return c128{0.0, z.im};
  const f64 size = fmax(fabs(z.re), fabs(z.im));
  const bool is_large = size > 0x1p1000, is_small = size < 0x1p-900;
  const f64 scale = is_large ? 0x1p-100 : is_small ? 0x1p200 : 1.0, root = is_large ? 0x1p50 : is_small ? 0x1p-100 : 1.0;
  const f64 x = fabs(z.re) * scale, y = z.im * scale;
  const f64 larger = sqrt((hypot(x, y) + x) / 2), smaller = y / (2 * larger);
  if (z.re >= 0) return c128{larger * root, smaller * root};
  return c128{fabs(smaller) * root, copysign(larger, z.im) * root};
}
)"},
    {"RsqrtWide", "SqrtWide DivideWide", R"(static __device__ __noinline__ c128 RsqrtWide(c128 z) {
  if (isinf(z.re) || isinf(z.im)) {
    return isnan(z.re) || isnan(z.im) ? c128{0.0, 0.0} : c128{0.0, copysign(0.0, -z.im)};
  }
  return DivideWide(c128{1.0, 0.0}, SqrtWide(z));
}
)"},
    {"Expm1Wide", "ExpWide", R"(static __device__ __noinline__ c128 Expm1Wide(c128 z) {
  if (z.re > 40) return ExpWide(z);
  f64 sine, cosine;
  sincos(z.im, &sine, &cosine);
  const f64 half_sine = sin(z.im / 2);
  return c128{expm1(z.re) * cosine - 2 * half_sine * half_sine, sine == 0 ? sine : exp(z.re) * sine};
}
)"},
    {"Log1pWide", "LogWide", R"(static __device__ __noinline__ c128 Log1pWide(c128 z) {
  const c128 sum = {1 + z.re, z.im};
  if (!(fabs(z.re) < 0x1p300 && fabs(z.im) < 0x1p300)) return LogWide(sum);
  const f64 excess = z.re * (2 + z.re) + z.im * z.im;  // |1 + z|^2 - 1
  if (excess < -0.5) return LogWide(sum);              // the excess has lost digits, 1 + z has not
  return c128{log1p(excess) / 2, atan2(z.im, sum.re)};
}
)"},
    {"LogisticWide", "ExpWide DivideWide", R"(static __device__ __noinline__ c128 LogisticWide(c128 z) {
  if (!isfinite(z.re) || !isfinite(z.im)) {
    const c128 e = ExpWide(c128{-z.re, -z.im});
    return DivideWide(c128{1.0, 0.0}, c128{1 + e.re, e.im});
  }
  // Of w with a real part that is not positive, so that e^w does not overflow. Beside the poles 1 + e^w would cancel.
  const bool is_right = z.re >= 0;
  const c128 w = is_right ? c128{-z.re, -z.im} : z;
  const c128 e = ExpWide(w);
  const f64 half_cosine = cos(w.im / 2);
  const c128 sum = {2 * half_cosine * half_cosine + cos(w.im) * expm1(w.re), e.im};
  return DivideWide(is_right ? c128{1.0, 0.0} : e, sum);
}
)"},
    {"CbrtWide", "ScaleForModulus", R"(static __device__ __noinline__ c128 CbrtWide(c128 z) {
  if (z.re == 0 && z.im == 0) return z;
  const f64 scale = ScaleForModulus(z);
  const f64 root = cbrt(hypot(z.re * scale, z.im * scale)) * (scale > 1 ? 0x1p-200 : scale < 1 ? 0x1p200 : 1.0);
  f64 sine, cosine;
  sincos(atan2(z.im, z.re) / 3, &sine, &cosine);
  return c128{root * cosine, root * sine};
}
)"},
    TENSORD_WIDE(Sign),
    TENSORD_WIDE(Exp),
    TENSORD_WIDE(Log),
    TENSORD_WIDE(Sin),
    TENSORD_WIDE(Cos),
    TENSORD_WIDE(Tan),
    TENSORD_WIDE(Tanh),
    TENSORD_WIDE(Sqrt),
    TENSORD_WIDE(Rsqrt),
    TENSORD_WIDE(Expm1),
    TENSORD_WIDE(Log1p),
    TENSORD_WIDE(Logistic),
    TENSORD_WIDE(Cbrt),
    TENSORD_WIDE(Sinh),
    TENSORD_WIDE(Cosh),
    {"Pair", "Types", R"(// The sum of two doubles that do not overlap: 106 bits.
struct Pair {
  f64 high, low;
};
TENSORD_FN Pair PairOfSum(f64 a, f64 b) {
  const f64 sum = a + b, rest = sum - a;
  return Pair{sum, (a - (sum - rest)) + (b - rest)};
}
TENSORD_FN Pair PairOfProduct(f64 a, f64 b) {
  const f64 product = a * b;
  return Pair{product, fma(a, b, -product)};
}
TENSORD_FN Pair Plus(Pair a, Pair b) {
  const Pair high = PairOfSum(a.high, b.high), low = PairOfSum(a.low, b.low);
  const Pair sum = PairOfSum(high.high, high.low + low.high);
  return PairOfSum(sum.high, sum.low + low.low);
}
TENSORD_FN Pair Times(Pair a, Pair b) {
  const Pair product = PairOfProduct(a.high, b.high);
  return PairOfSum(product.high, product.low + (a.high * b.low + a.low * b.high));
}
TENSORD_FN Pair Minus(Pair a) { return Pair{-a.high, -a.low}; }
TENSORD_FN Pair Quotient(Pair a, Pair b) {
  const f64 first = a.high / b.high;
  const Pair rest = Plus(a, Minus(Times(b, Pair{first, 0.0})));
  return PairOfSum(first, rest.high / b.high);
}
)"},
    {"PairLog", "Pair Complex", R"(// log z of finite z other than 0, each part with about 70 bits.
static __device__ const f64 kArcTangents[9][2] = {  // of k/8
    {0.0, 0.0},
    {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
    {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
    {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
    {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
    {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
    {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
    {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
    {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55}};
TENSORD_FN Pair PairArcTangent(f64 y, f64 x) {  // of y/x, from 0 to 1
  const int k = (int)rint(8 * (y / x));
  const f64 c = k / 8.0;
  const Pair cx = PairOfProduct(c, x), cy = PairOfProduct(c, y);
  const Pair u = Quotient(Plus(Pair{y, 0.0}, Minus(cx)), Plus(Pair{x, 0.0}, cy));
  const Pair square = Times(u, u);
  f64 tail = 0;
  for (int n = 21; n >= 7; n -= 2) tail = 1.0 / n - square.high * tail;
  Pair sum = Plus(Pair{0x1.999999999999ap-3, -0x1.999999999999ap-57}, Minus(Times(square, Pair{tail, 0.0})));
  sum = Plus(Pair{0x1.5555555555555p-2, 0x1.5555555555555p-56}, Minus(Times(square, sum)));
  sum = Plus(Pair{1.0, 0.0}, Minus(Times(square, sum)));
  return Plus(Pair{kArcTangents[k][0], kArcTangents[k][1]}, Times(u, sum));
}
static __device__ __noinline__ void PairLog(c128 z, Pair* modulus, Pair* angle) {
  const int exponent = ilogb(fmax(fabs(z.re), fabs(z.im)));
  const f64 re = scalbn(fabs(z.re), -exponent), im = scalbn(fabs(z.im), -exponent);
  Pair norm = Plus(PairOfProduct(re, re), PairOfProduct(im, im));
  f64 halvings = 0;
  while (norm.high > 0x1.6a09e667f3bcdp+0) {
    norm = Pair{norm.high / 2, norm.low / 2};
    halvings += 1;
  }
  const Pair s = Quotient(Plus(norm, Pair{-1.0, 0.0}), Plus(norm, Pair{1.0, 0.0}));
  const Pair square = Times(s, s);
  f64 tail = 0;
  for (int n = 31; n >= 9; n -= 2) tail = 1.0 / n + square.high * tail;
  Pair sum = Plus(Pair{0x1.2492492492492p-3, 0x1.2492492492492p-57}, Times(square, Pair{tail, 0.0}));
  sum = Plus(Pair{0x1.999999999999ap-3, -0x1.999999999999ap-57}, Times(square, sum));
  sum = Plus(Pair{0x1.5555555555555p-2, 0x1.5555555555555p-56}, Times(square, sum));
  sum = Plus(Pair{1.0, 0.0}, Times(square, sum));
  const Pair ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  *modulus = Plus(Times(Pair{exponent + halvings / 2, 0.0}, ln2), Times(s, sum));
  Pair turn = im <= re ? PairArcTangent(im, re) : Plus(Pair{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54},
                                                        Minus(PairArcTangent(re, im)));
  if (signbit(z.re)) turn = Plus(Pair{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53}, Minus(turn));
  *angle = signbit(z.im) ? Minus(turn) : turn;
}
)"},
    {"PowWide", "PairLog ExpWide Expm1Wide LogWide MultiplyComplex",
     R"(// e^(b log a) has as many wrong digits as b log a has before its point, so there are more to begin with.
static __device__ __noinline__ c128 PowWide(c128 a, c128 b) {
  if (b.re == 0 && b.im == 0) return c128{1.0, 0.0};
  const bool is_zero = a.re == 0 && a.im == 0;
  if (is_zero && b.re > 0) return c128{0.0, 0.0};
  if (is_zero || !isfinite(a.re) || !isfinite(a.im) || !isfinite(b.re) || !isfinite(b.im)) {
    return ExpWide(MultiplyComplex(b, LogWide(a)));
  }
  Pair modulus, angle;
  PairLog(a, &modulus, &angle);
  // What so large a part gives is 0 or as good as infinite, and a phase without digits: it need not overflow.
  const f64 most = 0x1p1000, by = 0x1p-100;
  const Pair br = {fabs(b.re) > most ? b.re * by : b.re, 0.0}, bi = {fabs(b.im) > most ? b.im * by : b.im, 0.0};
  const Pair re = Plus(Times(br, modulus), Minus(Times(bi, angle)));
  const Pair im = Plus(Times(br, angle), Times(bi, modulus));
  const c128 power = ExpWide(c128{re.high, im.high});
  // The low part of a large angle is many turns.
  const c128 rest = MultiplyComplex(power, Expm1Wide(c128{re.low, im.low}));
  if (!isfinite(rest.re) || !isfinite(rest.im)) return power;
  return c128{power.re + rest.re, power.im + rest.im};
}
)"},
    {"PowComplex", "PowWide", R"(template <typename R>
TENSORD_FN Complex<R> PowComplex(Complex<R> a, Complex<R> b) {
  const c128 w = PowWide(c128{(f64)a.re, (f64)a.im}, c128{(f64)b.re, (f64)b.im});
  return Complex<R>{(R)w.re, (R)w.im};
}
)"},
};

}  // namespace

absl::Span<const CudaPiece> CudaComplexPieces() { return kComplexPieces; }

}  // namespace tensord
