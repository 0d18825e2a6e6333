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

// A quotient is that of both sides times powers of two, which neither overflows nor vanishes on the way.
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
TENSORD_FN int QuotientExponent(T x) {
  const R most = fmax(fabs(x.re), fabs(x.im));
  return most == 0 || isinf(most) || isnan(most) ? 0 : ilogb(most);
}
TENSORD_FN T Over(T x, T y) {
  const int above = QuotientExponent(x), below = QuotientExponent(y);
  const R a = ldexp(x.re, -above), b = ldexp(x.im, -above), c = ldexp(y.re, -below), d = ldexp(y.im, -below);
  const R square = c * c + d * d;
  return T{ldexp((a * c + b * d) / square, above - below), ldexp((b * c - a * d) / square, above - below)};
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

// Sums of a group are joined in one order, and have the same bits in each of its lanes.
constexpr absl::string_view kGroupText = R"(// The other lane's x, at a distance that is a power of two.
template <typename X>
TENSORD_FN X Across(X x, int distance) {
  return __shfl_xor_sync(0xffffffffu, x, distance);
}
template <typename X>
TENSORD_FN X SumOver(int lanes, X x) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) x += Across(x, distance);
  return x;
}
TENSORD_FN T TotalOver(int lanes, T x) {
  const R re = SumOver(lanes, RealOf(x));
  return Number(re, kIsComplex ? SumOver(lanes, ImagOf(x)) : 0);
}
template <typename X>
TENSORD_FN X MostOver(int lanes, X x) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const X other = Across(x, distance);
    if (other > x) x = other;
  }
  return x;
}
TENSORD_FN T Product(T a, T b) {
  return Number(RealOf(a) * RealOf(b) - ImagOf(a) * ImagOf(b), RealOf(a) * ImagOf(b) + ImagOf(a) * RealOf(b));
}
TENSORD_FN T Sum(T a, T b) { return Number(RealOf(a) + RealOf(b), ImagOf(a) + ImagOf(b)); }
TENSORD_FN T Minus(T a, T b) { return Number(RealOf(a) - RealOf(b), ImagOf(a) - ImagOf(b)); }
TENSORD_FN R Square(T x) { return RealOf(x) * RealOf(x) + ImagOf(x) * ImagOf(x); }
TENSORD_FN R Modulus(T x) { return kIsComplex ? hypot(RealOf(x), ImagOf(x)) : fabs(RealOf(x)); }
// x times 2^exponent.
TENSORD_FN T Scaled(T x, int exponent) { return Number(ldexp(RealOf(x), exponent), ldexp(ImagOf(x), exponent)); }
TENSORD_FN int ExponentOf(R most) { return most > 0 && isfinite(most) ? ilogb(most) : 0; }
)";

// Matrices that a block takes one after the other in one launch, since nothing stops a launch: some 10 ms of small
// ones, of which factorizations have a block, and iterations a part of a warp.
constexpr int64_t kMostTurnsOfBlock = 64;
constexpr int64_t kMostTurnsOfWarp = 16;

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

void MatrixText::AddGroup() { Add(kGroupText); }

void MatrixText::Add(absl::string_view text) { absl::StrAppend(&text_.source, text); }

void MatrixText::Each(absl::string_view entry, absl::string_view parameters, int64_t count, absl::string_view body) {
  if (count == 0) return;
  const int64_t step = OpenEntry(entry, parameters, {.count = count, .per_block = kThreads, .most = count});
  Add(absl::StrCat("  for (i64 i = first_of_part + (i64)blockIdx.x * kThreads + threadIdx.x; i < end_of_part; i += ",
                   step, "ll) {\n", body, "\n  }\n}\n"));
}

void MatrixText::EachByBlock(absl::string_view entry, absl::string_view parameters, int64_t count,
                             absl::string_view body) {
  if (count == 0) return;
  const int64_t step = OpenEntry(entry, parameters, {.count = count, .most = most_blocks_ * kMostTurnsOfBlock});
  Add(absl::StrCat("  for (i64 i = first_of_part + blockIdx.x; i < end_of_part; i += ", step, "ll) {\n", body,
                   "\n  }\n}\n"));
}

void MatrixText::EachByBlockInTurns(absl::string_view entry, absl::string_view parameters, int64_t count, int64_t turns,
                                    absl::string_view body) {
  if (turns == 1) return EachByBlock(entry, parameters, count, absl::StrCat("    const i64 turn = 0;\n", body));
  if (count == 0) return;
  const int64_t blocks = std::min(most_blocks_, count);
  Add(absl::StrCat("extern \"C\" __global__ void ", entry, "(u64 first_block, ", parameters,
                   ") {\n  const i64 turn = (i64)(first_block / ", blocks, "u);\n  for (i64 i = blockIdx.x; i < ",
                   count, "ll; i += ", blocks, "ll) {\n", body, "\n  }\n}\n"));
  text_.launches.push_back(
      {.entry = std::string(entry), .blocks = blocks * turns, .threads_per_block = kThreads, .parts = turns});
}

void MatrixText::EachByGroup(absl::string_view entry, absl::string_view parameters, int64_t count, int group,
                             absl::string_view body) {
  if (count == 0) return;
  const int64_t per_warp = kWarp / group;
  const int64_t step = OpenEntry(
      entry, parameters,
      {.count = count, .threads = kWarp, .per_block = per_warp, .most = most_blocks_ * per_warp * kMostTurnsOfWarp});
  Add(absl::StrCat(
      "  const int lane = (int)threadIdx.x % ", group, ";\n  for (i64 first = first_of_part + (i64)blockIdx.x * ",
      per_warp, "; first < end_of_part; first += ", step, "ll) {\n    const i64 mine = first + threadIdx.x / ", group,
      ";\n    const bool is_here = mine < end_of_part;\n    const i64 i = is_here ? mine : end_of_part - 1;\n", body,
      "\n    __syncwarp();\n  }\n}\n"));
}

int64_t MatrixText::OpenEntry(absl::string_view entry, absl::string_view parameters, const Spread& spread) {
  const int64_t parts = CeilDiv(spread.count, spread.most);
  const int64_t blocks = std::min(most_blocks_, CeilDiv(std::min(spread.count, spread.most), spread.per_block));
  const std::string bounds = spread.threads < kThreads ? absl::StrCat("__launch_bounds__(", spread.threads, ") ") : "";
  Add(absl::StrCat("extern \"C\" __global__ void ", bounds, entry, "(", parts > 1 ? "u64 first_block, " : "",
                   parameters, ") {\n"));
  if (parts == 1) {
    Add(absl::StrCat("  const i64 first_of_part = 0, end_of_part = ", spread.count, "ll;\n"));
  } else {
    Add(absl::StrCat("  const i64 first_of_part = (i64)(first_block / ", blocks, "u) * ", spread.most,
                     "ll, end_of_part = ", spread.count, "ll - first_of_part < ", spread.most, "ll ? ", spread.count,
                     "ll : first_of_part + ", spread.most, "ll;\n"));
  }
  text_.launches.push_back(
      {.entry = std::string(entry), .blocks = blocks * parts, .threads_per_block = spread.threads, .parts = parts});
  return blocks * spread.per_block;
}

}  // namespace tensord::cuda
