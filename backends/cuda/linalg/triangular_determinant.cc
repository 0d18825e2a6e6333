#include "backends/cuda/kernels/text_kernel.h"
#include "backends/cuda/linalg/determinants.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/families/linalg/host_matrix.h"

namespace tensord::cuda {
namespace {

// A real number as one of ordinary size and a power of two, and the product of such, part by part.
constexpr char kDeterminantScaledText[] = R"(
struct Scaled {
  f64 number;
  i64 exponent;
};
TENSORD_FN Scaled Scale(f64 x, i64 exponent) {
  if (x == 0 || !isfinite(x)) return Scaled{x, 0};
  const int own = ilogb(x) + 1;
  return Scaled{ldexp(x, -own), exponent + own};
}
TENSORD_FN f64 Unscale(Scaled x, i64 exponent) {
  const i64 by = x.exponent - exponent;
  return ldexp(x.number, by > 65536 ? 65536 : by < -65536 ? -65536 : (int)by);
}
TENSORD_FN Scaled Times(Scaled a, Scaled b) { return Scale(a.number * b.number, a.exponent + b.exponent); }
TENSORD_FN Scaled Minus(Scaled a) { return Scaled{-a.number, a.exponent}; }
TENSORD_FN Scaled Plus(Scaled a, Scaled b) {
  if (a.number == 0 && b.number != 0) return b;
  if (b.number == 0 && a.number != 0) return a;
  const i64 exponent = a.exponent > b.exponent ? a.exponent : b.exponent;
  return Scale(Unscale(a, exponent) + Unscale(b, exponent), exponent);
}
)";

constexpr char kDeterminantMultiply[] = R"(    Scaled re = Scale(1, 0), im = Scaled{0, 0};
    for (i64 k = 0; k < kN; ++k) {
      const T x = matrices[i * kN * kN + k * (kN + 1)];
      const Scaled x_re = Scale(RealOf(x), 0), x_im = Scale(ImagOf(x), 0), was = re;
      if (kIsComplex) {
        re = Plus(Times(was, x_re), Minus(Times(im, x_im)));
        im = Plus(Times(was, x_im), Times(im, x_re));
      } else {
        re = Times(was, x_re);
      }
    }
    const i64 more = TENSORD_MORE;
    re = Scale(re.number, re.exponent + more);
    im = Scale(im.number, im.exponent + more);
    determinant[i] = Number((R)Unscale(re, 0), (R)Unscale(im, 0));
    const i64 exponent = re.number == 0 ? im.exponent : im.number == 0 || re.exponent > im.exponent ? re.exponent : im.exponent;
    const f64 a = Unscale(re, exponent), b = Unscale(im, exponent), modulus = kIsComplex ? hypot(a, b) : fabs(a);
    if (kIsComplex) {
      const bool is_nan = isnan(a) || isnan(b);
      const f64 by = is_nan || modulus == 0 ? 1 : modulus;
      sign[i] = Number((R)(a / by), (R)(b / by));
    } else {
      sign[i] = Number((R)(a > 0 ? 1.0 : a < 0 ? -1.0 : a), 0);
    }
    const bool is_low = modulus < 0x1.6a09e667f3bcdp-1;
    logarithm[i] = (R)(log(is_low ? modulus * 2 : modulus) + (f64)(exponent - (is_low ? 1 : 0)) * 0x1.62e42fefa39efp-1);)";

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeTriangularDeterminant(const BoundInstruction& instruction,
                                                                  const KernelContext& context) {
  const ConcreteType& operand = instruction.operands[0];
  const bool has_exponents = instruction.operands.size() > 1;
  MatrixText text(operand.dtype, context.compiler->printing().num_processors * MatrixText::kBlocksPerProcessor);
  text.Constant("kN", operand.shape[0]);
  text.Add(has_exponents ? "#define TENSORD_MORE (i64)exponents[i]\n" : "#define TENSORD_MORE 0\n");
  text.Add(kDeterminantScaledText);
  const std::string parameters = std::string("const T* matrices, ") + (has_exponents ? "const R* exponents, " : "") +
                                 "T* determinant, T* sign, R* logarithm";
  text.Each("multiply", parameters, BatchSize(operand.shape), kDeterminantMultiply);
  return TextKernel::Make(text.Take(), "a thread a matrix", context);
}

}  // namespace tensord::cuda
