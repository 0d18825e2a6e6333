// Fused kernels as machine code against the same kernels as steps of precompiled functions: the same bits, for random
// programs, for every op and dtype, on both instruction sets.

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/jit/code.h"
#include "backends/cpu/jit/program.h"
#include "gtest/gtest.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/micro/random_micro_program.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/fused/call.h"
#include "tests/unit/backends/cpu/jit/comparison.h"

namespace tensord::cpu {
namespace {

void ExpectRandomCodeSame(const RandomMicroOptions& options, uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::mt19937_64 random(seed);
    const RandomMicro micro = MakeRandomMicroProgram(options, &random);
    const std::vector<Literal> tensors = SampleTensors(micro.program, micro.tensor_elements, seed);
    if (!ExpectSameBits(micro.program, tensors, absl::StrCat("seed ", seed))) return;
  }
}

TEST(JitTest, RandomPrograms) {
  ForEachJitIsa([] {
    ExpectRandomCodeSame({.max_points = 3000, .takes = Takes}, 1, 600);
    ExpectRandomCodeSame({.reduces = true, .max_points = 3000, .takes = Takes}, 1000, 400);
    ExpectRandomCodeSame({.max_points = 100000, .instructions = 6, .takes = Takes}, 2000, 10);
  });
}

TEST(JitTest, LongProgramsSpillRegisters) {
  ForEachJitIsa([] {
    ExpectRandomCodeSame({.max_points = 300, .instructions = 400, .takes = Takes}, 1, 10);
    ExpectRandomCodeSame({.reduces = true, .max_points = 300, .instructions = 150, .takes = Takes}, 1, 10);
  });
}

// Sums that are not exact show how they were put together.
TEST(JitTest, ReductionsAreAddedUpAlike) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kC64}) {
    for (const auto& [length, rows] :
         {std::pair<int64_t, int64_t>{3, 5}, {100, 70}, {1000, 9}, {1024, 64}, {70001, 2}}) {
      const std::string what = absl::StrCat(Name(dtype), " ", length, " by ", rows);
      for (MicroProgram program : {LayerNormProgram(length, rows, dtype), VarianceProgram(length, rows, dtype)}) {
        std::vector<int64_t> elements(program.tensors.size(), 0);
        for (const MicroInstruction& instruction : program.instructions) {
          if (instruction.kind != MicroKind::kLoad) continue;
          elements[static_cast<size_t>(instruction.tensor)] = program.num_points(MicroLevel::kFull);
        }
        std::mt19937_64 random(3);
        std::vector<Literal> tensors;
        for (size_t t = 0; t < elements.size(); ++t) {
          tensors.push_back(RandomLiteral({program.tensors[t], {elements[t]}}, Values::kModest, &random));
        }
        if (!ExpectSameBits(program, tensors, what)) return;
      }
      if (kComplexes.Contains(dtype)) continue;
      const MicroProgram softmax = SoftmaxProgram(length, rows, dtype);
      std::mt19937_64 random(4);
      if (!ExpectSameBits(softmax, {RandomLiteral({dtype, {length * rows}}, Values::kModest, &random)}, what)) return;
    }
  }
}

// Lengths around multiples of vectors and of the turns of a loop; operands as arrays, and as single elements.
void ExpectSameAtAllLengths(const std::string& what, const std::vector<DType>& operands,
                            const std::function<int32_t(MicroBuilder&, const std::vector<int32_t>&)>& build) {
  for (const int64_t n : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 1003}) {
    for (size_t single = 0; single <= operands.size(); ++single) {
      MicroBuilder b(std::vector<MicroAxis>{{.size = n}});
      std::vector<int32_t> values;
      std::vector<int64_t> elements;
      for (size_t i = 0; i < operands.size(); ++i) {
        const bool is_single = i + 1 == single;
        values.push_back(b.Load(operands[i], is_single ? MicroLevel::kUniform : MicroLevel::kFull));
        elements.push_back(is_single ? 1 : n);
      }
      b.Result(build(b, values));
      const MicroProgram program = b.Build();
      const std::vector<Literal> tensors = SampleTensors(program, elements, static_cast<uint64_t>(n) * 3 + 1);
      if (!ExpectSameBits(program, tensors, absl::StrCat(what, ", ", n, " elements"))) return;
    }
  }
}

TEST(JitTest, EveryOpAndDType) {
  ForEachJitIsa([] {
    for (int index = 0; index < kNumCoreOps; ++index) {
      const CoreOp op = static_cast<CoreOp>(index);
      const OpClass op_class = Def(op).op_class;
      if (op_class != OpClass::kUnary && op_class != OpClass::kBinary) continue;
      for (const DType dtype : kAllDTypes) {
        if (!Takes(op, dtype)) continue;
        const std::string what = absl::StrCat(Def(op).name, " of ", Name(dtype));
        if (op_class == OpClass::kUnary) {
          ExpectSameAtAllLengths(what, {dtype}, [&](MicroBuilder& b, const auto& v) { return b.Unary(op, v[0]); });
        } else {
          ExpectSameAtAllLengths(what, {dtype, dtype},
                                 [&](MicroBuilder& b, const auto& v) { return b.Binary(op, v[0], v[1]); });
        }
      }
    }
  });
}

TEST(JitTest, EveryComparisonSelectionAndClamp) {
  ForEachJitIsa([] {
    for (const DType dtype : kAllDTypes) {
      const std::string name(Name(dtype));
      const bool is_complex = kComplexes.Contains(dtype);
      for (int d = 1; d <= (is_complex ? 2 : 6); ++d) {
        const CompareDirection direction = static_cast<CompareDirection>(d);
        ExpectSameAtAllLengths(absl::StrCat("compare ", d, " of ", name), {dtype, dtype},
                               [&](MicroBuilder& b, const auto& v) { return b.Compare(direction, v[0], v[1]); });
        for (const DType chosen : {DType::kBool, DType::kF32, DType::kF64, DType::kI64, DType::kBF16, DType::kC64}) {
          ExpectSameAtAllLengths(absl::StrCat("select by comparison ", d, " of ", name, " among ", Name(chosen)),
                                 {dtype, dtype, chosen, chosen}, [&](MicroBuilder& b, const auto& v) {
                                   return b.Select(b.Compare(direction, v[0], v[1]), v[2], v[3]);
                                 });
        }
      }
      ExpectSameAtAllLengths(absl::StrCat("select of ", name), {DType::kBool, dtype, dtype},
                             [](MicroBuilder& b, const auto& v) { return b.Select(v[0], v[1], v[2]); });
      if (is_complex) continue;
      ExpectSameAtAllLengths(absl::StrCat("clamp of ", name), {dtype, dtype, dtype},
                             [](MicroBuilder& b, const auto& v) { return b.Clamp(v[0], v[1], v[2]); });
    }
  });
}

TEST(JitTest, EveryConversion) {
  ForEachJitIsa([] {
    for (const DType from : kAllDTypes) {
      for (const DType to : kAllDTypes) {
        ExpectSameAtAllLengths(absl::StrCat("convert ", Name(from), " to ", Name(to)), {from},
                               [&](MicroBuilder& b, const auto& v) { return b.Convert(to, v[0]); });
      }
    }
  });
}

// The widest values leave but two elements to a vector of AVX2.
TEST(JitTest, WideValuesBesideNarrowOnes) {
  ForEachJitIsa([] {
    const auto scaled = [](MicroBuilder& b, int32_t x, int32_t factor) {
      return b.Binary(CoreOp::kMultiply, x, b.Convert(DType::kC128, factor));
    };
    ExpectSameAtAllLengths("c128 by f64", {DType::kC128, DType::kF64, DType::kC128},
                           [&](MicroBuilder& b, const auto& v) {
                             const int32_t inverse = b.Binary(CoreOp::kDivide, v[1], b.Unary(CoreOp::kSqrt, v[1]));
                             return b.Binary(CoreOp::kAdd, scaled(b, v[0], inverse), b.Unary(CoreOp::kConj, v[2]));
                           });
    for (const DType narrow : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32}) {
      ExpectSameAtAllLengths(absl::StrCat("c128 by f64 or ", Name(narrow)),
                             {DType::kC128, DType::kF64, narrow, DType::kBool}, [&](MicroBuilder& b, const auto& v) {
                               const int32_t factor = b.Select(v[3], v[1], b.Convert(DType::kF64, v[2]));
                               return scaled(b, scaled(b, v[0], factor), v[1]);
                             });
    }
    ExpectSameAtAllLengths("c128 and c64", {DType::kC128, DType::kC64, DType::kI64},
                           [](MicroBuilder& b, const auto& v) {
                             const int32_t square = b.Convert(DType::kC128, b.Binary(CoreOp::kMultiply, v[1], v[1]));
                             const int32_t whole = b.Convert(DType::kC128, b.Binary(CoreOp::kAdd, v[2], v[2]));
                             return b.Binary(CoreOp::kSubtract, b.Binary(CoreOp::kMultiply, v[0], square), whole);
                           });
  });
}

// Bounds that are known when code is made have shorter code.
TEST(JitTest, OrderBesideConstants) {
  ForEachJitIsa([] {
    for (const CoreOp op : {CoreOp::kMaximum, CoreOp::kMinimum}) {
      for (const float bound : {0.0f, -0.0f, 1.5f, -1.0f, INFINITY, NAN}) {
        for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16}) {
          const auto constant = [&](MicroBuilder& b) { return b.Convert(dtype, b.Constant(Literal::Scalar(bound))); };
          const auto literal = [&](MicroBuilder& b) {
            if (dtype == DType::kF64) return b.Constant(Literal::Scalar(static_cast<double>(bound)));
            return dtype == DType::kF32 ? b.Constant(Literal::Scalar(bound)) : constant(b);
          };
          const std::string what = absl::StrCat(Def(op).name, " of ", Name(dtype), " and ", bound);
          ExpectSameAtAllLengths(what, {dtype},
                                 [&](MicroBuilder& b, const auto& v) { return b.Binary(op, v[0], literal(b)); });
          ExpectSameAtAllLengths(what, {dtype},
                                 [&](MicroBuilder& b, const auto& v) { return b.Binary(op, literal(b), v[0]); });
          ExpectSameAtAllLengths(what, {dtype}, [&](MicroBuilder& b, const auto& v) {
            return b.Clamp(literal(b), v[0], b.Unary(CoreOp::kNegate, v[0]));
          });
        }
      }
    }
  });
}

MicroProgram Polynomial(int64_t n) {
  MicroBuilder b(std::vector<MicroAxis>{{.size = n}});
  const int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
  int32_t y = x;
  for (int i = 0; i < 12; ++i) y = b.Binary(CoreOp::kAdd, b.Binary(CoreOp::kMultiply, y, x), x);
  b.Result(y);
  return b.Build();
}

bool IsCode(const std::string& description) { return absl::StrContains(description, "bytes of code"); }

TEST(JitTest, IntegersByConstants) {
  ForEachJitIsa([] {
    for (const DType dtype : {DType::kI32, DType::kI64}) {
      VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
        if constexpr (IntegerElement<T>) {
          constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
          for (const T divisor :
               {T(0), T(1), T(-1), T(2), T(-2), T(7), T(-7), T(641), T(1) << 30, kMin, kMax, T(kMin + 1)}) {
            MicroBuilder b(std::vector<MicroAxis>{{.size = 4100}});
            const int32_t x = b.Load(dtype, MicroLevel::kFull), by = b.Constant(Literal::Scalar(divisor));
            const int32_t quotient = b.Binary(CoreOp::kDivide, x, by), rest = b.Binary(CoreOp::kRemainder, x, by);
            const int32_t zero = b.Constant(Literal::Scalar(T(0))), one = b.Constant(Literal::Scalar(T(1)));
            const int32_t is_below = b.Compare(CompareDirection::kLt, rest, zero);
            b.Result(b.Select(is_below, b.Binary(CoreOp::kSubtract, quotient, one), quotient));
            b.Result(b.Binary(CoreOp::kDivide, b.Binary(CoreOp::kAdd, x, rest), by));
            const MicroProgram program = b.Build();
            const std::string what = absl::StrCat(Name(dtype), " by ", divisor);
            if (!ExpectSameBits(program, SampleTensors(program, {4100}, 3), what)) return;
          }
        }
      });
    }
  });
}

TEST(JitTest, IsUsedWhereItPays) {
  const bool has_code = BestJitIsa() != JitIsa::kNone;
  EXPECT_EQ(IsCode(Fused(Polynomial(10000)).Describe()), has_code);
  EXPECT_FALSE(IsCode(Fused(Polynomial(3)).Describe()));
  EXPECT_EQ(IsCode(Fused(Polynomial(3), kCode).Describe()), has_code);
  EXPECT_FALSE(IsCode(Fused(Polynomial(10000), kSteps).Describe()));
}

TEST(JitTest, StepsTakeOverWhereCodeIsRefused) {
  const JitOptions refused = {.use = JitOptions::Use::kAlways, .protect = [](void*, size_t) { return false; }};
  const MicroProgram program = Polynomial(1000);
  const Fused fused(program, refused);
  EXPECT_FALSE(IsCode(fused.Describe()));
  const std::vector<Literal> tensors = SampleTensors(program, {1000}, 1);
  EXPECT_EQ(fused.Run(tensors, 1), Fused(program, kSteps).Run(tensors, 1));
}

TEST(JitTest, CodeIsNotWritableAndLivesAsLongAsItsOwner) {
  const std::string returns = "\xc3";
  static int protections = 0;
  const ProtectCode counted = [](void* pages, size_t bytes) { return ++protections, ProtectByMprotect(pages, bytes); };
  const auto code = JitCode::Create({returns, returns}, counted);
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(protections, 1);
  EXPECT_EQ(code->code_bytes(), 2);
  EXPECT_EQ(static_cast<const char*>(code->part(1)) - static_cast<const char*>(code->part(0)), 64);
  EXPECT_EQ(JitCode::Create({}, counted), nullptr);
}

}  // namespace
}  // namespace tensord::cpu
