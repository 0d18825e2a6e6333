#include "backends/cuda/linalg/matrix_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/prelude.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr absl::string_view kReal = R"(typedef R T;
typedef f64 Wide;
TENSORD_FN R RealOf(T x) { return x; }
TENSORD_FN R ImagOf(T) { return 0; }
TENSORD_FN T Number(R re, R) { return re; }
TENSORD_FN T Conj(T x) { return x; }
TENSORD_FN T Times(T x, R by) { return x * by; }
TENSORD_FN T MinusProduct(T x, T a, T b) { return x - a * b; }
TENSORD_FN T Over(T x, T y) { return x / y; }
)";

// A quotient is that of the divisor times a power of two, which neither overflows nor vanishes.
constexpr absl::string_view kComplex = R"(typedef Complex<R> T;
typedef Complex<f64> Wide;
TENSORD_FN R RealOf(T x) { return x.re; }
TENSORD_FN R ImagOf(T x) { return x.im; }
TENSORD_FN T Number(R re, R im) { return T{re, im}; }
TENSORD_FN T Conj(T x) { return T{x.re, -x.im}; }
TENSORD_FN T Times(T x, R by) { return T{x.re * by, x.im * by}; }
TENSORD_FN T MinusProduct(T x, T a, T b) {
  return T{x.re - (a.re * b.re - a.im * b.im), x.im - (a.re * b.im + a.im * b.re)};
}
TENSORD_FN T Over(T x, T y) {
  const R most = fmax(fabs(y.re), fabs(y.im));
  const int exponent = most == 0 || isinf(most) || isnan(most) ? 0 : ilogb(most);
  const R c = ldexp(y.re, -exponent), d = ldexp(y.im, -exponent), square = c * c + d * d;
  return T{ldexp((x.re * c + x.im * d) / square, -exponent), ldexp((x.im * c - x.re * d) / square, -exponent)};
}
)";

constexpr absl::string_view kBoth =
    R"(TENSORD_FN bool IsFinite(T x) { return isfinite(RealOf(x)) && isfinite(ImagOf(x)); }
TENSORD_FN bool IsZero(T x) { return RealOf(x) == 0 && ImagOf(x) == 0; }
TENSORD_FN R Most(T x) { return fmax(fabs(RealOf(x)), fabs(ImagOf(x))); }
// As LAPACK chooses pivots.
TENSORD_FN R Magnitude(T x) { return fabs(RealOf(x)) + fabs(ImagOf(x)); }
TENSORD_FN T NotANumber() {
  const R nan = (R)__longlong_as_double(0x7ff8000000000000ll);
  return Number(nan, nan);
}
)";

}  // namespace

MatrixText::MatrixText(DType dtype, int64_t most_blocks) : most_blocks_(most_blocks) {
  CudaPrelude prelude;
  prelude.Use("Types");
  prelude.Use("Complex");
  const bool is_complex = dtype == DType::kC64 || dtype == DType::kC128;
  const bool is_single = dtype == DType::kF32 || dtype == DType::kC64;
  text_.source = absl::StrCat(prelude.Text(), "typedef ", is_single ? "f32" : "f64", " R;\n",
                              is_complex ? kComplex : kReal, kBoth);
  Constant("kThreads", kThreads);
  Constant("kIsComplex", is_complex ? 1 : 0);
  Constant("kIsSingle", is_single ? 1 : 0);
}

void MatrixText::Constant(absl::string_view name, int64_t value) {
  // Compilers say nothing of an enumerator that a text does not use.
  absl::StrAppend(&text_.source, "enum : i64 { ", name, " = ", value, "ll };\n");
}

void MatrixText::Add(absl::string_view text) { absl::StrAppend(&text_.source, text); }

void MatrixText::Each(absl::string_view entry, absl::string_view parameters, int64_t count, absl::string_view body) {
  Entry(entry, parameters, count, kThreads, "(i64)blockIdx.x * kThreads + threadIdx.x", body);
}

void MatrixText::EachByBlock(absl::string_view entry, absl::string_view parameters, int64_t count,
                             absl::string_view body) {
  Entry(entry, parameters, count, 1, "blockIdx.x", body);
}

void MatrixText::Entry(absl::string_view entry, absl::string_view parameters, int64_t count, int64_t per_block,
                       absl::string_view begin, absl::string_view body) {
  if (count == 0) return;
  const int64_t blocks = std::min(most_blocks_, CeilDiv(count, per_block));
  absl::StrAppend(&text_.source, "extern \"C\" __global__ void ", entry, "(", parameters, ") {\n  for (i64 i = ", begin,
                  "; i < ", count, "ll; i += ", blocks * per_block, "ll) {\n", body, "\n  }\n}\n");
  text_.launches.push_back({.entry = std::string(entry), .blocks = blocks, .threads_per_block = kThreads});
}

}  // namespace tensord::cuda
