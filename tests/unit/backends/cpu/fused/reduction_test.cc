// Fused reductions of real numbers over shapes that take every way through the kernel: short and long rows, panels,
// whole tensors, few and many groups, values kept between stages. Against the reference, and for every number of
// threads alike.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "engine/ops/scalar/scalar_math.h"
#include "gtest/gtest.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/micro/micro_evaluator.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/fused/call.h"
#include "tests/unit/backends/cpu/micro_axes.h"

namespace tensord::cpu {
namespace {

const std::vector<Axes>& Shapes() {
  static const auto* const shapes = new std::vector<Axes>{
      {Reduced(5)},
      {Reduced(300001)},
      {Reduced(1024), Kept(70)},
      {Reduced(4099), Kept(3)},
      {Reduced(2), Kept(3001)},
      {Reduced(40), Kept(777)},
      {Reduced(3), Kept(16)},
      {Reduced(100), Kept(5), Kept(61)},
      {Reduced(255), Kept(35)},
      {Reduced(11), Reduced(20), Kept(33)},
      {Reduced(100000), Kept(2)},
      {Kept(2), Reduced(100000)},
      {Kept(3), Reduced(7), Kept(5)},
      {Kept(37), Reduced(900)},
      {Kept(600), Reduced(50)},
      {Kept(5000), Reduced(31)},
      {Kept(1025), Reduced(513)},
      {Kept(70001), Reduced(2)},
      {Kept(64), Reduced(20), Kept(30)},
      {Reduced(70), Kept(6), Reduced(40)},
      {Reduced(16), Kept(40), Reduced(3), Kept(9)},
      {Kept(3), Kept(500), Reduced(70), Kept(2)},
      {Kept(2), Reduced(3), Kept(2), Reduced(200), Kept(2), Reduced(5)},
      {Kept(1), Reduced(1)},
      {},
  };
  return *shapes;
}

std::vector<Literal> Tensors(const MicroProgram& program, Values values) {
  std::mt19937_64 random(11);
  std::vector<Literal> tensors(program.tensors.size());
  for (const MicroInstruction& instruction : program.instructions) {
    if (instruction.kind != MicroKind::kLoad) continue;
    const int64_t points = program.num_points(instruction.level);
    tensors[static_cast<size_t>(instruction.tensor)] = RandomLiteral({instruction.dtype, {points}}, values, &random);
  }
  return tensors;
}

template <typename T>
double Magnitude(T x) {
  if constexpr (ComplexElement<T>) {
    return static_cast<double>(std::abs(x));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return x.value;
  } else {
    return std::abs(static_cast<double>(static_cast<std::conditional_t<HalfElement<T>, float, T>>(x)));
  }
}

template <typename T>
double Distance(T a, T b) {
  if constexpr (std::is_same_v<T, Bool> || HalfElement<T>) {
    return std::abs(Magnitude(a) - Magnitude(b));
  } else {
    return Magnitude(static_cast<T>(a - b));
  }
}

// That each result is the reference's but for `tolerance` of the larger of it and 1, and the same for all threads.
void ExpectClose(const MicroProgram& program, Values values, double tolerance, const std::string& what) {
  const std::vector<Literal> tensors = Tensors(program, values);
  const std::vector<Literal> want = EvaluateMicroProgram(program, tensors);
  const Fused fused(program);
  ASSERT_TRUE(fused.ok()) << what;
  const std::vector<std::string> once = fused.Run(tensors, 1);
  for (size_t r = 0; r < want.size(); ++r) {
    VisitDType(want[r].dtype(), [&]<typename T>(TypeTag<T>) {
      ASSERT_EQ(once[r].size(), want[r].bytes().size()) << what;
      for (size_t i = 0; i < once[r].size() / sizeof(T); ++i) {
        T got;
        std::memcpy(&got, once[r].data() + i * sizeof(T), sizeof(T));
        const T expected = want[r].values<T>()[i];
        ASSERT_LE(Distance(got, expected), tolerance * std::max(1.0, Magnitude(expected)))
            << what << ", result " << r << ", element " << i;
      }
    });
  }
  EXPECT_TRUE(fused.Run(tensors, 2) == once) << what;
  EXPECT_TRUE(fused.Run(tensors, 5) == once) << what;
}

double ToleranceOf(DType dtype) {
  if (dtype == DType::kF16) return 0x1p-8;
  if (dtype == DType::kBF16) return 0x1p-5;
  return RealPartOf(dtype) == DType::kF64 ? 1e-12 : 1e-4;
}

int32_t Softmax(MicroBuilder& b, int32_t x) {
  const int32_t e = b.Unary(CoreOp::kExp, b.Binary(CoreOp::kSubtract, x, b.Reduce(ReduceKind::kMax, x)));
  return b.Binary(CoreOp::kDivide, e, b.Reduce(ReduceKind::kSum, e));
}

TEST(FusedReductionTest, Softmax) {
  for (const Axes& axes : Shapes()) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
      MicroBuilder b(axes);
      b.Result(Softmax(b, b.Load(dtype, MicroLevel::kFull)));
      ExpectClose(b.Build(), Values::kModest, ToleranceOf(dtype), absl::StrCat("softmax ", AxesText(axes)));
    }
  }
}

// Products that are added up where their factors lie, or are; alone, beside what reads them too, and of what was
// computed.
TEST(FusedReductionTest, SumsOfProducts) {
  for (const Axes& axes : Shapes()) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kI32}) {
      const std::string what = absl::StrCat("sums of products ", Name(dtype), " ", AxesText(axes));
      MicroBuilder alone(axes);
      const int32_t a = alone.Load(dtype, MicroLevel::kFull);
      alone.Result(alone.Reduce(ReduceKind::kSum, alone.Binary(CoreOp::kMultiply, a, a)));
      ExpectClose(alone.Build(), Values::kIntegers, 0, what);
      MicroBuilder b(axes);
      const int32_t x = b.Load(dtype, MicroLevel::kFull), y = b.Load(dtype, MicroLevel::kFull);
      const int32_t product = b.Binary(CoreOp::kMultiply, x, y), difference = b.Binary(CoreOp::kSubtract, x, y);
      b.Result(b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, difference, x)));
      b.Result(b.Reduce(ReduceKind::kSum, product));
      b.Result(b.Reduce(ReduceKind::kMax, product));
      ExpectClose(b.Build(), Values::kIntegers, 0, what);
    }
  }
}

// The exponentials are a result themselves, so that they can be kept where they are written.
TEST(FusedReductionTest, SoftmaxWithItsParts) {
  for (const Axes& axes : Shapes()) {
    MicroBuilder b(axes);
    const int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
    const int32_t largest = b.Reduce(ReduceKind::kMax, x);
    const int32_t e = b.Unary(CoreOp::kExp, b.Binary(CoreOp::kSubtract, x, largest));
    const int32_t sum = b.Reduce(ReduceKind::kSum, e);
    const int32_t log = b.Unary(CoreOp::kLog, b.Binary(CoreOp::kDivide, e, sum));
    for (int32_t value : {e, log, sum, largest, e, x}) b.Result(value);
    ExpectClose(b.Build(), Values::kModest, 1e-4, absl::StrCat("parts of a softmax ", AxesText(axes)));
  }
}

Literal Reciprocal(DType dtype, const Axes& axes) {
  double count = 1;
  for (const MicroAxis& axis : axes) count *= axis.is_reduced ? static_cast<double>(axis.size) : 1;
  return VisitDType(dtype,
                    [&]<typename T>(TypeTag<T>) { return Literal::Scalar(scalar::ConvertElement<T>(1 / count)); });
}

TEST(FusedReductionTest, MeanVarianceAndNormal) {
  for (const Axes& axes : Shapes()) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kC64, DType::kC128}) {
      MicroBuilder b(axes);
      const int32_t x = b.Load(dtype, MicroLevel::kFull);
      const int32_t scale = b.Load(dtype, MicroLevel::kKept);
      const int32_t share = b.Constant(Reciprocal(dtype, axes));
      // Each term is divided, so that sums of 16-bit numbers stay in range.
      const int32_t mean = b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, x, share));
      const int32_t centred = b.Binary(CoreOp::kSubtract, x, mean);
      const int32_t square = b.Binary(CoreOp::kMultiply, centred, b.Unary(CoreOp::kConj, centred));
      const int32_t variance = b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, square, share));
      b.Result(b.Binary(CoreOp::kMultiply, b.Binary(CoreOp::kMultiply, centred, scale), variance));
      b.Result(mean);
      b.Result(b.Unary(CoreOp::kReal, variance));
      ExpectClose(b.Build(), Values::kModest, dtype == DType::kF16 ? 0.1 : ToleranceOf(dtype),
                  absl::StrCat("normal of ", Name(dtype), " ", AxesText(axes)));
    }
  }
}

TEST(FusedReductionTest, Products) {
  for (const Axes& axes : Shapes()) {
    for (DType dtype : {DType::kF64, DType::kC128}) {
      MicroBuilder b(axes);
      b.Result(b.Reduce(ReduceKind::kProduct, b.Unary(CoreOp::kNegate, b.Load(dtype, MicroLevel::kFull))));
      ExpectClose(b.Build(), Values::kNearOne, 1e-10, absl::StrCat("product of ", Name(dtype), " ", AxesText(axes)));
    }
  }
}

TEST(FusedReductionTest, NoTermGivesTheIdentity) {
  for (const Axes& axes : {Axes{Reduced(0)}, Axes{Reduced(0), Kept(70)}, Axes{Kept(300), Reduced(5), Reduced(0)}}) {
    for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProduct, ReduceKind::kMax, ReduceKind::kMin}) {
      for (DType dtype : {DType::kF32, DType::kI64, DType::kBF16, DType::kC64}) {
        MicroBuilder b(axes);
        const int32_t x = b.Load(dtype, MicroLevel::kFull);
        const int32_t reduced = b.Reduce(kind, b.Unary(CoreOp::kNegate, x));
        b.Result(reduced);
        b.Result(b.Binary(CoreOp::kMaximum, x, reduced));
        const MicroProgram program = b.Build();
        const std::vector<Literal> tensors = Tensors(program, Values::kModest);
        const std::vector<Literal> want = EvaluateMicroProgram(program, tensors);
        EXPECT_EQ(Fused(program).Run(tensors, 2)[0], std::string(want[0].bytes())) << ToString(program);
      }
    }
  }
}

TEST(FusedReductionTest, ValuesOfNoAxisAreThereWhereNothingElseIs) {
  for (const Axes& axes : {Axes{Kept(0)}, Axes{Reduced(0)}, Axes{Reduced(1000), Kept(0), Reduced(2), Kept(3)},
                           Axes{Kept(0), Reduced(3), Kept(5)}, Axes{Kept(300), Reduced(0), Kept(0), Kept(2)}}) {
    MicroBuilder b(axes);
    const int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
    const int32_t single = b.Load(DType::kF32, MicroLevel::kUniform);
    const int32_t shifted = b.Binary(CoreOp::kAdd, x, single);
    b.Result(b.Unary(CoreOp::kNegate, single));
    b.Result(b.Reduce(ReduceKind::kSum, shifted));
    b.Result(shifted);
    ExpectClose(b.Build(), Values::kModest, 1e-4, absl::StrCat("nothing over ", AxesText(axes)));
    const MicroProgram program = [&] {
      MicroBuilder alone(axes);
      alone.Result(alone.Unary(CoreOp::kNegate, alone.Load(DType::kI32, MicroLevel::kUniform)));
      return alone.Build();
    }();
    const std::vector<Literal> tensors = Tensors(program, Values::kModest);
    EXPECT_EQ(Fused(program).Run(tensors, 2)[0], std::string(EvaluateMicroProgram(program, tensors)[0].bytes()));
  }
}

// docs/use/numerics.md: the error of a sum grows with the logarithm of its length.
TEST(FusedReductionTest, SumsAreAccurate) {
  for (const Axes& axes : Shapes()) {
    MicroBuilder b(axes);
    b.Result(b.Reduce(ReduceKind::kSum, b.Unary(CoreOp::kNegate, b.Load(DType::kF32, MicroLevel::kFull))));
    const MicroProgram program = b.Build();
    const int64_t points = program.num_points(MicroLevel::kFull);
    const double terms = static_cast<double>(points) / static_cast<double>(program.num_points(MicroLevel::kKept));
    std::vector<Literal> tensors = Tensors(program, Values::kModest);
    for (size_t i = 0; i < static_cast<size_t>(points); ++i) {
      const float tiny = 0x1p-25f;  // vanishes against 1
      tensors[0].mutable_values<float>()[i] = i % 7919 == 0 ? -1.0f : -tiny;
    }
    const Literal want = EvaluateMicroProgram(program, tensors)[0];  // in F64
    const std::vector<std::string> got = Fused(program).Run(tensors, 3);
    for (size_t k = 0; k < want.values<float>().size(); ++k) {
      float sum = 0;
      std::memcpy(&sum, got[0].data() + k * sizeof(float), sizeof(float));
      const double exact = static_cast<double>(want.values<float>()[k]);  // all terms have one sign
      ASSERT_LE(std::abs(static_cast<double>(sum) - exact), exact * 0x1p-24 * (4 * std::log2(2 * terms) + 1))
          << AxesText(axes) << ", sum " << k;
    }
  }
}

// One thread streams them, and several do if all touched memory does not fit the cache.
TEST(FusedReductionTest, ResultsTooBigForTheCacheAreStreamed) {
  for (const int64_t n : {StreamedResultBytes() / SizeOf(DType::kF32) + 777, StreamedResultBytes() / 2 + 777}) {
    MicroBuilder b({Kept(n)});
    const int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
    const int32_t twice = b.Binary(CoreOp::kAdd, x, x);
    b.Result(twice);
    b.Result(b.Compare(CompareDirection::kLt, b.Binary(CoreOp::kMultiply, twice, x), b.Unary(CoreOp::kAbs, twice)));
    const MicroProgram program = b.Build();
    const std::vector<Literal> tensors = Tensors(program, Values::kEdges);
    const std::vector<std::string> apart = Fused(program).Run(tensors, 2);
    EXPECT_TRUE(Fused(program).Run(tensors, 1) == apart);
    for (size_t i = 0; i < static_cast<size_t>(n); i += 101) {
      float got = 0;
      std::memcpy(&got, apart[0].data() + i * sizeof(float), sizeof(float));
      const float value = tensors[0].values<float>()[i];
      ASSERT_TRUE(Agree(got, value + value, 0)) << i;
      ASSERT_EQ(apart[1][i] != 0, (value + value) * value < std::abs(value + value)) << i;
    }
  }
}

}  // namespace
}  // namespace tensord::cpu
