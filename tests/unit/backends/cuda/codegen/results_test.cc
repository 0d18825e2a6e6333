// The results of printed kernels, on a device if the machine has one, and on the processor: an ordinary compiler takes
// the CUDA C++ as well if threads, barriers and shuffles are emulated. Elementary functions are then those of the C
// library.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/ops/scalar/scalar_math.h"
#include "gtest/gtest.h"
#include "tests/testlib/cuda/cuda_device.h"
#include "tests/testlib/cuda/cuda_emulator.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/micro/micro_evaluator.h"
#include "tests/testlib/micro/random_micro_program.h"
#include "tests/testlib/numbers/complex_limits.h"
#include "tests/testlib/numbers/exact_math.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/literal_of.h"
#include "tests/testlib/numbers/math_arguments.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cuda/codegen/printed_cases.h"

namespace tensord {
namespace {

std::vector<Literal> EmptyResults(const MicroProgram& program) {
  std::vector<Literal> results;
  for (const MicroResult& result : program.results) {
    const MicroInstruction& computed = program.instructions[static_cast<size_t>(result.value)];
    results.push_back(*Literal::Create({computed.dtype, {program.num_points(computed.level)}}));
  }
  return results;
}

std::vector<Literal> RandomOperands(const MicroProgram& program, const std::vector<int64_t>& elements, Values values,
                                    std::mt19937_64* random) {
  std::vector<Literal> operands;
  for (size_t t = 0; t < elements.size(); ++t) {
    operands.push_back(RandomLiteral({program.tensors[t], {elements[t]}}, values, random));
  }
  return operands;
}

enum class RunsOn { kEmulator, kDevice };

class CudaResultsTest : public testing::TestWithParam<RunsOn> {
 protected:
  // Compiles all cases; skips where there is no compiler, or no device.
  void Build(std::vector<PrintedCase> cases) {
    cases_ = std::move(cases);
    std::vector<KernelText> kernels;
    for (const PrintedCase& c : cases_) kernels.push_back(PrintCuda(c.program, c.options));
    if (GetParam() == RunsOn::kDevice) {
      Keep(CudaDevice::Build(kernels), &device_);
    } else {
      Keep(CudaEmulator::Build(kernels, TENSORD_TEST_COMPILER, testing::TempDir()), &emulator_);
    }
  }

  std::vector<Literal> Run(size_t c, const std::vector<Literal>& operands) {
    std::vector<Literal> results = EmptyResults(cases_[c].program);
    const absl::Status status =
        GetParam() == RunsOn::kDevice ? device_.Run(c, operands, &results) : emulator_.Run(c, operands, &results);
    EXPECT_TRUE(status.ok()) << Describe(c) << status;
    return results;
  }

  std::string Describe(size_t c) const {
    return absl::StrCat(cases_[c].name, "\n", ToString(cases_[c].program),
                        PrintCuda(cases_[c].program, cases_[c].options).source);
  }

  std::vector<PrintedCase> cases_;

 private:
  template <typename Machine>
  static void Keep(absl::StatusOr<Machine> built, Machine* machine) {
    if (absl::IsUnavailable(built.status())) GTEST_SKIP() << built.status();
    ASSERT_TRUE(built.ok()) << built.status();
    *machine = *std::move(built);
  }

  CudaEmulator emulator_;
  CudaDevice device_;
};

INSTANTIATE_TEST_SUITE_P(Cuda, CudaResultsTest, testing::Values(RunsOn::kEmulator, RunsOn::kDevice),
                         [](const auto& info) { return info.param == RunsOn::kDevice ? "Device" : "Emulator"; });

// Complex numbers of which a part is NaN are one NaN: which of several an extreme is, is not promised.
Literal OneNan(Literal literal) {
  VisitDType(literal.dtype(), [&]<typename T>(TypeTag<T>) {
    if constexpr (ComplexElement<T>) {
      for (T& z : literal.mutable_values<T>()) {
        if (z != z) z = T(std::numeric_limits<typename T::value_type>::quiet_NaN(), 0);
      }
    }
  });
  return literal;
}

constexpr int64_t kSpecialPoints = 4200;  // more than every pair of special numbers

// Numbers at which a function written twice is most easily two functions.
template <typename T>
std::vector<T> Specials() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, Bool>) {
    return {Bool(false), Bool(true)};
  } else if constexpr (IntegerElement<T>) {
    constexpr int kBits = sizeof(T) * 8;
    constexpr T kTie = (T(1) << (kBits - 4)) + (T(1) << (kBits - 12));  // halfway between two BF16
    return {0,
            1,
            -1,
            2,
            -2,
            3,
            -3,
            10,
            31,
            32,
            63,
            64,
            Limits::max(),
            Limits::max() - 1,
            Limits::min(),
            Limits::min() + 1,
            kTie,
            kTie + 1,
            -kTie - 1};
  } else if constexpr (HalfElement<T>) {
    std::vector<T> halves;
    for (float x : Specials<float>()) halves.push_back(T(x));
    for (uint16_t bits : {0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0x7f7f, 0x0080}) halves.push_back(T::FromBits(bits));
    return halves;
  } else if constexpr (ComplexElement<T>) {
    using R = typename T::value_type;
    const R infinity = std::numeric_limits<R>::infinity(), nan = std::numeric_limits<R>::quiet_NaN();
    std::vector<T> points;
    for (R re : {R(0), -R(0), R(1), R(-2.5), infinity, -infinity, nan, std::numeric_limits<R>::denorm_min()}) {
      for (R im : {R(0), -R(0), R(0.5), R(-1), infinity, -infinity, nan, std::numeric_limits<R>::max()}) {
        points.push_back(T(re, im));
      }
    }
    return points;
  } else {
    std::vector<T> numbers = {Limits::quiet_NaN()};
    for (T x : {T(0),
                Limits::denorm_min(),
                Limits::min() / 2,
                Limits::min(),
                Limits::epsilon(),
                T(0.25),
                T(0.5),
                T(1),
                T(1.5),
                T(2),
                T(2.5),
                T(3),
                T(10),
                T(88.8),
                T(104),
                T(710),
                T(1e5),
                T(8388609.5),
                T(2147483648.0),
                T(4503599627370497.5),
                T(9223372036854775808.0),
                Limits::max(),
                Limits::infinity()}) {
      numbers.push_back(x);
      numbers.push_back(-x);
    }
    return numbers;
  }
}

// Every pair of special numbers in the first two operands, and random ones behind.
std::vector<Literal> SpecialOperands(const MicroProgram& program, std::mt19937_64* random) {
  std::vector<Literal> operands = RandomOperands(program, OperandElements(program), Values::kEdges, random);
  for (size_t t = 0; t < std::min<size_t>(operands.size(), 2); ++t) {
    VisitDType(operands[t].dtype(), [&]<typename T>(TypeTag<T>) {
      const std::vector<T> specials = Specials<T>();
      const auto elements = operands[t].mutable_values<T>();
      for (size_t i = 0; i < std::min(elements.size(), specials.size() * specials.size()); ++i) {
        elements[i] = specials[(t == 0 ? i : i / specials.size()) % specials.size()];
      }
    });
  }
  return operands;
}

// Returns true for ops with the same result by any library.
bool IsExact(CoreOp op, DType dtype) {
  if (!Def(op).dtypes.Contains(dtype)) return false;
  const bool is_complex = kComplexes.Contains(dtype);
  switch (op) {
    case CoreOp::kAbs:
    case CoreOp::kSign:
    case CoreOp::kDivide:
    case CoreOp::kSqrt:
      return !is_complex;
    case CoreOp::kPow:
      return kIntegers.Contains(dtype);
    case CoreOp::kNegate:
    case CoreOp::kConj:
    case CoreOp::kFloor:
    case CoreOp::kCeil:
    case CoreOp::kRoundNearestEven:
    case CoreOp::kIsFinite:
    case CoreOp::kNot:
    case CoreOp::kReal:
    case CoreOp::kImag:
    case CoreOp::kAdd:
    case CoreOp::kSubtract:
    case CoreOp::kMultiply:
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
    case CoreOp::kRemainder:
    case CoreOp::kAnd:
    case CoreOp::kOr:
    case CoreOp::kXor:
    case CoreOp::kComplex:
      return true;
    default:
      return false;
  }
}

// Functions differ by the C library's last digits, and complex ones at infinities and NaN, of which other tests know:
// nothing is said of these. The rest is exact.
std::optional<Tolerance> ToleranceOf(const MicroProgram& program, const MicroResult& result, bool is_special) {
  const MicroInstruction& computed = program.instructions[static_cast<size_t>(result.value)];
  const bool is_function = computed.kind == MicroKind::kUnary || computed.kind == MicroKind::kBinary;
  if (!is_function) return Tolerance{};
  const DType of = program.instructions[static_cast<size_t>(computed.operands[0])].dtype;
  if (IsExact(computed.op, of)) return Tolerance{};
  if (!kComplexes.Contains(of)) return Tolerance{.ulps = SizeOf(of) == 2 ? 1.01 : 4};
  if (is_special) return std::nullopt;
  return Tolerance{.ulps = 4, .norm_relative = 1e-6};
}

// Difference, and empty only if zeros have the signs of the reference's zeros too.
std::string DifferenceWithSigns(const Literal& got, const Literal& want, const Tolerance& tolerance) {
  std::string difference = Difference(got, want, tolerance);
  if (!difference.empty()) return difference;
  return VisitDType(want.dtype(), [&]<typename T>(TypeTag<T>) -> std::string {
    const auto is_other_zero = [](double g, double w) {
      return g == 0 && w == 0 && std::signbit(g) != std::signbit(w);
    };
    for (size_t i = 0; i < want.values<T>().size(); ++i) {
      const Complex128 g = scalar::ConvertElement<Complex128>(got.values<T>()[i]);
      const Complex128 w = scalar::ConvertElement<Complex128>(want.values<T>()[i]);
      if (is_other_zero(g.real(), w.real()) || is_other_zero(g.imag(), w.imag())) {
        return absl::StrCat("element ", i, " is a zero of the other sign");
      }
    }
    return "";
  });
}

// The scalar functions of the text mean what those of engine/ops/scalar mean, of which the reference is made.
TEST_P(CudaResultsTest, ElementwiseInstructionsMeanWhatTheReferenceSays) {
  Build(ElementwiseCases(kSpecialPoints));
  std::mt19937_64 random(1);
  for (size_t c = 0; c < cases_.size() && !HasFailure() && !IsSkipped(); ++c) {
    const MicroProgram& program = cases_[c].program;
    for (bool is_special : {true, false}) {
      const std::vector<Literal> operands =
          is_special ? SpecialOperands(program, &random)
                     : RandomOperands(program, OperandElements(program), Values::kModest, &random);
      const std::vector<Literal> want = EvaluateMicroProgram(program, operands), got = Run(c, operands);
      for (size_t r = 0; r < want.size(); ++r) {
        const std::optional<Tolerance> tolerance = ToleranceOf(program, program.results[r], is_special);
        if (!tolerance.has_value()) continue;
        EXPECT_EQ(DifferenceWithSigns(got[r], want[r], *tolerance), "") << "result " << r << " of " << Describe(c);
      }
    }
  }
}

TEST_P(CudaResultsTest, EveryFormOfAccessReadsItsElements) {
  Build(AccessCases());
  std::mt19937_64 random(2);
  for (size_t c = 0; c < cases_.size() && !HasFailure() && !IsSkipped(); ++c) {
    const MicroProgram& program = cases_[c].program;
    const std::vector<Literal> operands = RandomOperands(program, OperandElements(program), Values::kModest, &random);
    const std::vector<Literal> want = EvaluateMicroProgram(program, operands), got = Run(c, operands);
    for (size_t r = 0; r < want.size(); ++r) {
      const Tolerance tolerance = want[r].dtype() == DType::kF32 ? Tolerance{.ulps = 1} : Tolerance{};
      EXPECT_EQ(Difference(got[r], want[r], tolerance), "") << "result " << r << " of " << Describe(c);
    }
  }
}

Tolerance SumTolerance(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kC128:
      return {.norm_relative = 1e-12};
    case DType::kF16:
      return {.ulps = 1.01, .norm_relative = 4e-3};
    case DType::kBF16:
      return {.ulps = 1.01, .norm_relative = 3e-2};
    default:
      return {.norm_relative = 1e-4};
  }
}

TEST_P(CudaResultsTest, ReductionsAndStagesAgreeWithTheReferenceHoweverTheyAreSpread) {
  Build(ReduceCases());
  std::mt19937_64 random(3);
  for (size_t c = 0; c < cases_.size() && !HasFailure() && !IsSkipped(); ++c) {
    const MicroProgram& program = cases_[c].program;
    const std::vector<int64_t> elements = OperandElements(program);
    std::vector<Literal> operands = RandomOperands(program, elements, Values::kModest, &random);
    const bool is_plain = absl::StartsWith(cases_[c].name, "reduce_");
    if (is_plain) {  // whole numbers are added, numbers near one multiplied
      operands[0] = RandomLiteral(operands[0].type(), Values::kIntegers, &random);
      operands[1] = RandomLiteral(operands[1].type(), Values::kNearOne, &random);
    }
    const std::vector<Literal> want = EvaluateMicroProgram(program, operands), got = Run(c, operands);
    for (size_t r = 0; r < want.size(); ++r) {
      const bool is_exact = is_plain && r != 3;
      EXPECT_EQ(Difference(got[r], want[r], is_exact ? Tolerance{} : SumTolerance(want[r].dtype())), "")
          << "result " << r << " of " << Describe(c);
    }
    if (!is_plain) continue;
    // NaN, infinities and signed zeros of the extremes.
    operands[0] = RandomLiteral(operands[0].type(), Values::kEdges, &random);
    const std::vector<Literal> want_edges = EvaluateMicroProgram(program, operands), got_edges = Run(c, operands);
    for (size_t r : {1, 2}) {
      EXPECT_EQ(Difference(OneNan(got_edges[r]), OneNan(want_edges[r]), {}), "")
          << "result " << r << " of " << Describe(c);
    }
  }
}

// Whether vectors cross the memory depends on pointers, and the bits do not.
TEST_P(CudaResultsTest, NeighboursAreTakenInOneOrderWithVectorsAndWithout) {
  Build(NeighbourCases());
  std::mt19937_64 random(4);
  for (size_t c = 0; c + 1 < cases_.size() && !HasFailure() && !IsSkipped(); c += 2) {
    const MicroProgram& program = cases_[c].program;
    const std::vector<Literal> operands = RandomOperands(program, OperandElements(program), Values::kModest, &random);
    const std::vector<Literal> want = EvaluateMicroProgram(program, operands), got = Run(c, operands),
                               other = Run(c + 1, operands);
    for (size_t r = 0; r < want.size(); ++r) {
      EXPECT_EQ(Difference(got[r], want[r], SumTolerance(want[r].dtype())), "")
          << "result " << r << " of " << Describe(c);
      EXPECT_EQ(Difference(other[r], got[r], {}), "") << "result " << r << " of " << Describe(c + 1);
    }
  }
}

// They have the same blocks.
TEST_P(CudaResultsTest, LaunchesThatAreCutGiveTheSameBits) {
  Build(CutCases());
  std::mt19937_64 random(5);
  int cut = 0;
  for (size_t c = 0; c + 1 < cases_.size() && !HasFailure() && !IsSkipped(); c += 2) {
    const MicroProgram& program = cases_[c].program;
    const std::vector<Literal> operands = RandomOperands(program, OperandElements(program), Values::kModest, &random);
    const std::vector<Literal> want = Run(c, operands), got = Run(c + 1, operands);
    for (size_t r = 0; r < want.size(); ++r) {
      EXPECT_EQ(Difference(got[r], want[r], {}), "") << "result " << r << " of " << Describe(c + 1);
    }
    for (const CudaLaunch& launch : PrintCuda(program, cases_[c + 1].options).launches) cut += launch.parts > 1;
  }
  EXPECT_TRUE(cut > 20 || HasFailure() || IsSkipped()) << cut;
}

constexpr int64_t kComplexArguments = 2000;

// The largest error of a complex op: its modulus in ulp of the result's, as docs/use/numerics.md counts.
template <typename R>
double LargestNormError(CoreOp op, const MathArguments<std::complex<R>>& arguments, const Literal& result) {
  using T = std::complex<R>;
  const ExactComplex meaning = ExactComplexOf(op);
  const bool is_real = result.dtype() == kDTypeOf<R>;
  double largest = 0;
  for (size_t i = 0; i < arguments.x.size(); ++i) {
    const T x = arguments.x[i], y = arguments.y.empty() ? T(0) : arguments.y[i];
    const T value = is_real ? T(result.values<R>()[i]) : result.values<T>()[i];
    const exact::WideComplex exact = meaning({x.real(), x.imag()}, {y.real(), y.imag()});
    // A number that overflows, or has subnormal parts, has fewer digits or none.
    const exact::Wide modulus = exact::Modulus(exact);
    if (!(modulus < std::numeric_limits<R>::max() / 4)) continue;
    const exact::Wide size = modulus < std::numeric_limits<R>::min() ? std::numeric_limits<R>::min() : modulus;
    const double error =
        static_cast<double>(exact::Modulus({value.real() - exact.re, value.imag() - exact.im}) / size) /
        std::numeric_limits<R>::epsilon();
    if (!(error <= 4)) {
      ADD_FAILURE() << Def(op).name << " of (" << x.real() << ", " << x.imag() << "), (" << y.real() << ", " << y.imag()
                    << ") is (" << value.real() << ", " << value.imag() << "), exactly ("
                    << static_cast<double>(exact.re) << ", " << static_cast<double>(exact.im) << "): off by " << error;
      return error;
    }
    largest = std::max(largest, error);
  }
  return largest;
}

TEST_P(CudaResultsTest, ComplexFunctionsAreWithinFourUlp) {
  std::vector<PrintedCase> cases;
  std::vector<CoreOp> ops;
  std::vector<std::vector<Literal>> operands;
  const auto add = [&]<typename R>(CoreOp op, R) {
    const auto arguments = ComplexMathArguments<R>(op, kComplexArguments, 11);
    const std::vector<MicroAxis> axes = {{.size = static_cast<int64_t>(arguments.x.size())}};
    MicroBuilder b(axes);
    const int32_t x = b.Load(kDTypeOf<std::complex<R>>, MicroLevel::kFull);
    std::vector<Literal>& literals = operands.emplace_back();
    literals.push_back(LiteralOf(arguments.x));
    if (!arguments.y.empty()) literals.push_back(LiteralOf(arguments.y));
    b.Result(arguments.y.empty() ? b.Unary(op, x)
                                 : b.Binary(op, x, b.Load(kDTypeOf<std::complex<R>>, MicroLevel::kFull)));
    AddCase({std::string(Def(op).name), b.Build()}, {}, &cases);
    ops.push_back(op);
  };
  for (const OpDef& def : CoreOps()) {
    const CoreOp op = static_cast<CoreOp>(def.index);
    const bool is_elementwise = def.op_class == OpClass::kUnary || def.op_class == OpClass::kBinary;
    if (!is_elementwise || !def.dtypes.Contains(DType::kC128) || ExactComplexOf(op) == nullptr) continue;
    add(op, float());
    add(op, double());
  }
  Build(std::move(cases));
  for (size_t c = 0; c < cases_.size() && !IsSkipped(); ++c) {
    const std::vector<Literal> results = Run(c, operands[c]);
    const double error =
        c % 2 == 0
            ? LargestNormError<float>(ops[c], ComplexMathArguments<float>(ops[c], kComplexArguments, 11), results[0])
            : LargestNormError<double>(ops[c], ComplexMathArguments<double>(ops[c], kComplexArguments, 11), results[0]);
    std::printf("  %s %s: %.2f ulp\n", cases_[c].name.c_str(), c % 2 == 0 ? "c64" : "c128", error);
  }
}

TEST_P(CudaResultsTest, LimitsAndCutsOfComplexFunctionsAreThoseOfAnnexG) {
  const std::vector<ComplexLimit> limits = ComplexLimits();
  std::vector<PrintedCase> cases;
  std::vector<std::vector<ComplexLimit>> of_case;
  for (const ComplexLimit& limit : limits) {
    if (of_case.empty() || of_case.back()[0].op != limit.op) of_case.emplace_back();
    of_case.back().push_back(limit);
  }
  for (const std::vector<ComplexLimit>& group : of_case) {
    const std::vector<MicroAxis> axes = {{.size = static_cast<int64_t>(group.size())}};
    MicroBuilder b(axes);
    b.Result(b.Unary(group[0].op, b.Load(DType::kC128, MicroLevel::kFull)));
    AddCase({std::string(Def(group[0].op).name), b.Build()}, {}, &cases);
  }
  Build(std::move(cases));
  for (size_t c = 0; c < cases_.size() && !IsSkipped(); ++c) {
    std::vector<Complex128> arguments;
    for (const ComplexLimit& limit : of_case[c]) arguments.push_back(limit.z);
    std::vector<Literal> operands;
    operands.push_back(LiteralOf(arguments));
    const std::vector<Literal> results = Run(c, operands);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Complex128 value = results[0].values<Complex128>()[i];
      EXPECT_TRUE(of_case[c][i].IsMetBy(value))
          << cases_[c].name << arguments[i] << " is " << value << ", not " << of_case[c][i].result;
    }
  }
}

TEST_P(CudaResultsTest, RandomProgramsGiveTheBitsOfTheReference) {
  constexpr size_t kPrograms = 80;
  std::mt19937_64 random(4);
  std::vector<PrintedCase> cases;
  std::vector<RandomMicro> programs;
  const std::vector<CudaOptions> options = ReduceOptions();
  for (size_t p = 0; p < kPrograms; ++p) {
    programs.push_back(MakeRandomMicroProgram({.reduces = p % 2 == 0, .takes = IsExact}, &random));
    AddCase({absl::StrCat("program ", p), programs.back().program}, options[p / 2 % options.size()], &cases);
  }
  Build(std::move(cases));
  for (size_t c = 0; c < cases_.size() && !HasFailure() && !IsSkipped(); ++c) {
    const MicroProgram& program = cases_[c].program;
    const std::vector<Literal> operands = RandomOperands(program, programs[c].tensor_elements, Values::kEdges, &random);
    const std::vector<Literal> want = EvaluateMicroProgram(program, operands), got = Run(c, operands);
    for (size_t r = 0; r < want.size(); ++r) {
      EXPECT_EQ(DifferenceWithSigns(got[r], want[r], {}), "") << "result " << r << " of " << Describe(c);
    }
  }
}

}  // namespace
}  // namespace tensord
