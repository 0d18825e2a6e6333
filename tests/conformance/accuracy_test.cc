// Every elementwise op on every floating-point dtype, through compiled programs of each backend, against exact results.
// Prints the table of docs/use/numerics.md, which is the CPU's. The device that the host plays has the host's functions
// in the place of NVIDIA's: there it is what the backend makes of them that is measured.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ops/scalar/scalar_math.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/node_case.h"
#include "tests/testlib/numbers/exact_math.h"
#include "tests/testlib/numbers/literal_of.h"
#include "tests/testlib/numbers/math_arguments.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

constexpr int64_t kF32Arguments = 600000;
constexpr int64_t kF64Arguments = 250000;
constexpr int64_t kHalfPairs = 100000;
constexpr int64_t kComplexArguments = 30000;

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// In units of the last place: 0 if every result is a number of the format, half of one where IEEE 754 asks for the
// nearest, 4 for the rest.
double PromisedUlps(CoreOp op, DType dtype) {
  switch (op) {
    case CoreOp::kNegate:
    case CoreOp::kConj:
    case CoreOp::kAbs:
    case CoreOp::kSign:
    case CoreOp::kFloor:
    case CoreOp::kCeil:
    case CoreOp::kRoundNearestEven:
    case CoreOp::kIsFinite:
    case CoreOp::kReal:
    case CoreOp::kImag:
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
    case CoreOp::kRemainder:
    case CoreOp::kComplex:
      return 0;
    case CoreOp::kAdd:
    case CoreOp::kSubtract:
    case CoreOp::kMultiply:
    case CoreOp::kDivide:
    case CoreOp::kSqrt:
      return 0.5;
    default:
      // 16-bit floats are computed in F32 and rounded once.
      return IsHalf(dtype) ? 0.5 + std::ldexp(4, FormatOf(dtype).digits - 24) : 4;
  }
}

// Returns the bound of complex results: the error's modulus in units of 2^-23 (C64) or 2^-52 (C128) of the result's, or
// of the least normal number if that is larger.
double PromisedNormUlps(CoreOp op) {
  switch (op) {
    case CoreOp::kNegate:
    case CoreOp::kConj:
    case CoreOp::kReal:
    case CoreOp::kImag:
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
      return 0;
    case CoreOp::kAdd:
    case CoreOp::kSubtract:
      return 0.5;
    default:
      return 4;
  }
}

// The measurement of one op on one dtype.
struct Measurement {
  int64_t count = 0;
  double max = 0;
  double sum = 0;
  int64_t wrong = 0;
  std::string worst;
  std::string first_wrong;

  template <typename Describe>
  void Add(double error, const Describe& describe) {
    ++count;
    if (std::isnan(error)) {
      if (++wrong == 1) first_wrong = describe();
      return;
    }
    sum += error;
    if (error > max) {
      max = error;
      worst = describe();
    }
  }
};

class Accuracy : public testing::TestWithParam<BackendUnderTest> {
 protected:
  template <typename T>
  Literal Run(CoreOp op, const MathArguments<T>& arguments) {
    NodeCase node_case{.name = std::string(Def(op).name), .op = &Def(op), .attrs = Attributes(Def(op).attrs)};
    std::vector<Literal> literals;
    literals.push_back(LiteralOf(arguments.x));
    if (!arguments.y.empty()) literals.push_back(LiteralOf(arguments.y));
    for (const Literal& literal : literals) node_case.operands.push_back(literal.type());
    auto results = CompileAndRun(GraphOf(node_case), {.backend = backend_.get()}, literals);
    EXPECT_TRUE(results.ok()) << Def(op).name << ": " << results.status();
    return results.ok() ? std::move((*results)[0]) : Literal();
  }

  // E is what the exact results are computed in.
  template <typename E, typename T>
  void MeasureReal(CoreOp op, const MathArguments<T>& arguments) {
    const DType dtype = kDTypeOf<T>;
    const ExactReal<E> meaning = ExactRealOf<E>(op);
    ASSERT_NE(meaning, nullptr) << "exact_math.cc does not say what " << Def(op).name << " means";
    const Literal result = Run(op, arguments);
    const auto wide = [](T x) { return static_cast<E>(scalar::ConvertElement<double>(x)); };
    Measurement measured;
    const auto measure = [&](const auto& values) {
      ASSERT_EQ(values.size(), arguments.x.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const T y = arguments.y.empty() ? T(0.0f) : arguments.y[i];
        const E value = static_cast<E>(scalar::ConvertElement<double>(values[i]));
        const E exact = meaning(wide(arguments.x[i]), wide(y));
        measured.Add(UlpError<E>(value, exact, FormatOf(dtype)), [&] {
          return absl::StrFormat(
              "(%.17g%s) gives %.17g, exactly %.17g", scalar::ConvertElement<double>(arguments.x[i]),
              arguments.y.empty() ? "" : absl::StrFormat(", %.17g", scalar::ConvertElement<double>(y)),
              static_cast<double>(value), static_cast<double>(exact));
        });
      }
    };
    if (result.dtype() == DType::kBool) {
      measure(result.values<Bool>());
    } else {
      ASSERT_EQ(result.dtype(), dtype);
      measure(result.values<T>());
    }
    Report(op, dtype, PromisedUlps(op, dtype), measured);
  }

  template <typename R>
  void MeasureComplex(CoreOp op) {
    using T = std::complex<R>;
    const DType dtype = kDTypeOf<T>;
    const ExactComplex meaning = ExactComplexOf(op);
    ASSERT_NE(meaning, nullptr) << "exact_math.cc does not say what " << Def(op).name << " means";
    const MathArguments<T> arguments = ComplexMathArguments<R>(op, kComplexArguments / one_of_, 11);
    const Literal result = Run(op, arguments);
    const bool real = result.dtype() == kDTypeOf<R>;
    ASSERT_TRUE(real || result.dtype() == dtype);
    Measurement measured;
    for (size_t i = 0; i < arguments.x.size(); ++i) {
      const T x = arguments.x[i], y = arguments.y.empty() ? T(0) : arguments.y[i];
      const T value = real ? T(result.values<R>()[i]) : result.values<T>()[i];
      const exact::WideComplex exact = meaning({x.real(), x.imag()}, {y.real(), y.imag()});
      // A number that overflows, or has subnormal parts, has fewer digits or none.
      const exact::Wide modulus = exact::Modulus(exact);
      if (!(modulus < std::numeric_limits<R>::max() / 4)) continue;
      const exact::Wide size = modulus < std::numeric_limits<R>::min() ? std::numeric_limits<R>::min() : modulus;
      const exact::Wide error = exact::Modulus({value.real() - exact.re, value.imag() - exact.im});
      const double ulps = static_cast<double>(error / size) / std::numeric_limits<R>::epsilon();
      measured.Add(ulps, [&] {
        return absl::StrFormat("((%.17g, %.17g)%s) gives (%.17g, %.17g), exactly (%.17g, %.17g)", x.real(), x.imag(),
                               arguments.y.empty() ? "" : absl::StrFormat(", (%.17g, %.17g)", y.real(), y.imag()),
                               value.real(), value.imag(), static_cast<double>(exact.re),
                               static_cast<double>(exact.im));
      });
    }
    Report(op, dtype, PromisedNormUlps(op), measured);
  }

  // All numbers for unary ops.
  template <typename T>
  MathArguments<T> HalfArguments(CoreOp op) {
    MathArguments<T> arguments;
    if (Def(op).op_class == OpClass::kUnary) {
      for (int bits = 0; bits < 1 << 16; ++bits) arguments.x.push_back(T::FromBits(static_cast<uint16_t>(bits)));
      return arguments;
    }
    std::mt19937_64 random(13);
    for (int64_t i = 0; i < kHalfPairs / one_of_; ++i) {
      arguments.x.push_back(T::FromBits(static_cast<uint16_t>(random())));
      arguments.y.push_back(i % 2 == 0 ? T::FromBits(static_cast<uint16_t>(random()))
                                       : T(std::uniform_real_distribution<float>(-8, 8)(random)));
    }
    return arguments;
  }

  void Report(CoreOp op, DType dtype, double promised, const Measurement& measured) {
    const absl::string_view name = Def(op).name;
    EXPECT_GT(measured.count, 0) << name;
    EXPECT_EQ(measured.wrong, 0) << name << " on " << Name(dtype) << ": " << measured.first_wrong;
    // glibc's functions, which stand for NVIDIA's, reduce the hardest argument there is, 5.3e255, less well.
    const bool is_of_glibc = GetParam().compiles && HostPlaysCuda() && dtype == DType::kF64;
    if (is_of_glibc && (op == CoreOp::kSin || op == CoreOp::kCos || op == CoreOp::kTan)) promised = 16;
    // The exact result itself has digits of a double only where the format is short.
    EXPECT_LE(measured.max, promised + (promised > 0 ? 1e-6 : 0)) << name << " on " << Name(dtype) << measured.worst;
    if (promised == 0) return;
    std::printf("| %s | %s | %lld | %.3f | %.3f | %s |\n", std::string(name).c_str(), std::string(Name(dtype)).c_str(),
                static_cast<long long>(measured.count), measured.max,
                measured.sum / static_cast<double>(measured.count), measured.worst.c_str());
  }

  const std::unique_ptr<Backend> backend_ = GetParam().make();
  // Another backend than the CPU has the same bounds to keep, on fewer arguments.
  const int64_t one_of_ = GetParam().compiles ? 20 : 1;
};

TEST_P(Accuracy, EveryElementwiseOpIsWithinItsBound) {
  std::printf("| op | dtype | arguments | max ulp | mean ulp | worst |\n|---|---|---|---|---|---|\n");
  for (const OpDef& def : CoreOps()) {
    if (def.op_class == OpClass::kPlain) continue;
    const CoreOp op = static_cast<CoreOp>(def.index);
    if (op == CoreOp::kComplex) continue;  // puts two numbers side by side: MakesComplexNumbersOfTheirParts
    const auto takes = [&def](DType dtype) { return def.dtypes.Contains(dtype); };
    if (takes(DType::kF32)) MeasureReal<double>(op, RealMathArguments<float>(op, kF32Arguments / one_of_, 17));
    if (takes(DType::kF64)) MeasureReal<exact::Wide>(op, RealMathArguments<double>(op, kF64Arguments / one_of_, 19));
    if (takes(DType::kF16)) MeasureReal<double>(op, HalfArguments<Float16>(op));
    if (takes(DType::kBF16)) MeasureReal<double>(op, HalfArguments<BFloat16>(op));
    if (takes(DType::kC64)) MeasureComplex<float>(op);
    if (takes(DType::kC128)) MeasureComplex<double>(op);
  }
}

TEST_P(Accuracy, MakesComplexNumbersOfTheirParts) {
  const MathArguments<double> arguments = RealMathArguments<double>(CoreOp::kComplex, 1000, 23);
  const Literal result = Run(CoreOp::kComplex, arguments);
  const auto values = result.values<Complex128>();
  ASSERT_EQ(values.size(), arguments.x.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double parts[] = {arguments.x[i], arguments.y[i]};
    EXPECT_EQ(std::memcmp(&values[i], parts, sizeof(parts)), 0) << parts[0] << ", " << parts[1];
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Accuracy, testing::ValuesIn(kCpuAndCuda), NameOfBackend());

}  // namespace
}  // namespace tensord
