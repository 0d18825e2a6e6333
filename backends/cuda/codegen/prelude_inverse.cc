#include "backends/cuda/codegen/prelude.h"
#include "backends/cuda/codegen/prelude_wide.h"

namespace tensord {
namespace {

#define TENSORD_LOG_TO_BASE(Name, log, per_log)                                                                \
  {                                                                                                            \
#Name "Wide", "LogWide",                                                                                   \
        "static __device__ __noinline__ c128 " #Name                                                           \
        "Wide(c128 z) {\n  const c128 w = LogWide(z);\n"                                                       \
        "  const bool is_on_axis = z.re == 0 || z.im == 0;\n"                                                  \
        "  return c128{is_on_axis ? " #log "(fabs(z.re) + fabs(z.im)) : w.re * " #per_log ", w.im * " #per_log \
        "};\n}\n"                                                                                              \
  }

// W. Kahan, Branch Cuts for Complex Elementary Functions (1987): the summands have one sign, so nothing cancels, and
// the signs of zeros choose the side of a cut.
constexpr CudaPiece kInversePieces[] = {
    {"AsinWide", "SqrtWide", R"(static __device__ __noinline__ c128 AsinWide(c128 z) {
  const f64 nan = z.re + z.im;
  if (isinf(z.re) || isinf(z.im)) {
    const f64 infinity = fmax(fabs(z.re), fabs(z.im));  // passes over NaN
    return c128{isnan(z.re) || isnan(z.im) ? nan - nan : atan2(z.re, fabs(z.im)), copysign(infinity, z.im)};
  }
  if (isnan(nan)) return c128{z.re == 0 ? z.re : nan, nan};
  const c128 below = SqrtWide(c128{1 - z.re, -z.im}), above = SqrtWide(c128{1 + z.re, z.im});
  return c128{atan2(z.re, below.re * above.re - below.im * above.im), asinh(below.re * above.im - below.im * above.re)};
}
)"},
    {"AcosWide", "SqrtWide", R"(static __device__ __noinline__ c128 AcosWide(c128 z) {
  const f64 nan = z.re + z.im;
  if (isinf(z.re) || isinf(z.im)) {
    const f64 infinity = fmax(fabs(z.re), fabs(z.im));
    return c128{isnan(z.re) || isnan(z.im) ? nan - nan : atan2(fabs(z.im), z.re), copysign(infinity, -z.im)};
  }
  if (isnan(nan)) return c128{z.re == 0 ? 0x1.921fb54442d18p+0 : nan, nan};
  const c128 below = SqrtWide(c128{1 - z.re, -z.im}), above = SqrtWide(c128{1 + z.re, z.im});
  return c128{2 * atan2(below.re, above.re), asinh(above.re * below.im - above.im * below.re)};
}
)"},
    {"AsinhWide", "AsinWide", R"(static __device__ __noinline__ c128 AsinhWide(c128 z) {
  const c128 turned = AsinWide(c128{-z.im, z.re});  // asinh z = -i asin(i z)
  return c128{turned.im, -turned.re};
}
)"},
    {"AcoshWide", "AcosWide", R"(static __device__ __noinline__ c128 AcoshWide(c128 z) {
  const c128 turned = AcosWide(z);  // i acos z or -i acos z
  return c128{fabs(turned.im), copysign(turned.re, z.im)};
}
)"},
    {"AtanhWide", "Complex", R"(static __device__ __noinline__ c128 AtanhWide(c128 z) {
  const f64 x = fabs(z.re), y = fabs(z.im), half_pi = 0x1.921fb54442d18p+0;
  if (isinf(x) || isinf(y)) return c128{copysign(0.0, z.re), isnan(y) ? y : copysign(half_pi, z.im)};
  if (isnan(x) || isnan(y)) return c128{x == 0 ? z.re : x + y, x + y};
  if (x > 0x1p500 || y > 0x1p500) {
    const f64 modulus = hypot(x / 2, y / 2);
    return c128{copysign(x / modulus / modulus / 4, z.re), copysign(half_pi, z.im)};
  }
  if (x == 1 && y < 0x1p-500) {
    return c128{copysign((0x1.62e42fefa39efp-1 - log(y)) / 2, z.re), y == 0 ? z.im : copysign(half_pi / 2, z.im)};
  }
  const f64 re = log1p(4 * x / ((1 - x) * (1 - x) + y * y)) / 4;
  return c128{copysign(re, z.re), atan2(2 * z.im, (1 - x) * (1 + x) - y * y) / 2};
}
)"},
    {"AtanWide", "AtanhWide", R"(static __device__ __noinline__ c128 AtanWide(c128 z) {
  const c128 turned = AtanhWide(c128{-z.im, z.re});  // atan z = -i atanh(i z)
  return c128{turned.im, -turned.re};
}
)"},
    {"Exp2Wide", "PowWide", R"(static __device__ __noinline__ c128 Exp2Wide(c128 z) {
  if (z.im == 0) return c128{exp2(z.re), z.im};
  const f64 ln2 = 0x1.62e42fefa39efp-1;
  if (!isfinite(z.re) || !isfinite(z.im)) return ExpWide(c128{z.re * ln2, z.im * ln2});
  return PowWide(c128{2.0, 0.0}, z);
}
)"},
    TENSORD_LOG_TO_BASE(Log2, log2, 0x1.71547652b82fep+0),
    TENSORD_LOG_TO_BASE(Log10, log10, 0x1.bcb7b1526e50ep-2),
    TENSORD_WIDE(Asin),
    TENSORD_WIDE(Acos),
    TENSORD_WIDE(Atan),
    TENSORD_WIDE(Asinh),
    TENSORD_WIDE(Acosh),
    TENSORD_WIDE(Atanh),
    TENSORD_WIDE(Log2),
    TENSORD_WIDE(Log10),
    TENSORD_WIDE(Exp2),
};

}  // namespace

absl::Span<const CudaPiece> CudaInversePieces() { return kInversePieces; }

}  // namespace tensord
