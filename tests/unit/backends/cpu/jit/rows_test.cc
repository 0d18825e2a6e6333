// Groups that are rows, as one piece of code for all stages, against the same kernels as steps: the same bits.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/jit/comparison.h"

namespace tensord::cpu {
namespace {

// Around multiples of vectors, of turns of four, and of the run below which folds have another order.
constexpr int64_t kLengths[] = {1,   2,   15,  16,  17,  63,  64,  65,  127,  255,
                                256, 257, 319, 320, 511, 512, 513, 767, 1000, 1024};
constexpr int64_t kFewRows = 5;  // fewer than are taken across the memory order

bool IsRows(const Fused& fused) { return absl::StrContains(fused.Describe(), "all stages of a row at once"); }

MicroBuilder RowsBuilder(int64_t length, int64_t rows) {
  return MicroBuilder({{.size = length, .is_reduced = true}, {.size = rows}});
}

Literal Random(DType dtype, int64_t elements, Values values, uint64_t seed) {
  std::mt19937_64 random(seed);
  return RandomLiteral({dtype, {elements}}, values, &random);
}

// A fold of what is read, and one of what the first one leaves; kept results and one of all points.
MicroProgram TwoFolds(ReduceKind kind, DType dtype, int64_t length) {
  MicroBuilder b = RowsBuilder(length, kFewRows);
  const int32_t x = b.Load(dtype, MicroLevel::kFull);
  const int32_t first = b.Reduce(kind, x);
  const int32_t rest = b.Binary(CoreOp::kSubtract, x, first);
  const int32_t second = b.Reduce(kind, rest);
  b.Result(first);
  b.Result(b.Binary(CoreOp::kAdd, first, second));
  b.Result(b.Binary(CoreOp::kMultiply, rest, second));
  return b.Build();
}

TEST(JitRowsTest, EveryFoldAtEveryLength) {
  ForEachJitIsa([] {
    for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProduct, ReduceKind::kMax, ReduceKind::kMin}) {
      for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kBF16}) {
        for (const int64_t length : kLengths) {
          const MicroProgram program = TwoFolds(kind, dtype, length);
          for (const Values values : {Values::kModest, Values::kEdges}) {
            const Literal x = Random(dtype, length * kFewRows, values, static_cast<uint64_t>(length));
            const std::string what = absl::StrCat("fold ", static_cast<int>(kind), " of ", length, " ", Name(dtype));
            if (!ExpectSameBits(program, {x}, what)) return;
          }
        }
      }
    }
  });
}

TEST(JitRowsTest, AreUsedForSoftmaxAndLayerNorm) {
  const bool has_rows = BestJitIsa() == JitIsa::kAvx512;
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const int64_t length : {256, 511}) {
      EXPECT_EQ(IsRows(Fused(SoftmaxProgram(length, 64, dtype))), has_rows);
      EXPECT_EQ(IsRows(Fused(LayerNormProgram(length, 64, dtype))), has_rows);
      EXPECT_EQ(IsRows(Fused(VarianceProgram(length, 64, dtype))), has_rows);
      EXPECT_FALSE(IsRows(Fused(SoftmaxProgram(length, 64, dtype), kSteps)));
    }
  }
  EXPECT_FALSE(IsRows(Fused(SoftmaxProgram(100000, 64, DType::kF32))));  // more than a tile
}

// Weights under a mask: of row j of a batch those that come before place j, by integers along the row and across.
MicroProgram MaskedProgram(int64_t length, int64_t rows, int64_t batch, DType dtype, DType places) {
  MicroBuilder b({{.size = length, .is_reduced = true}, {.size = rows}, {.size = batch}});
  const int32_t x = b.Load(dtype, MicroLevel::kFull);
  const int32_t place = b.Iota(places, MicroLevel::kFull, {.offset = 2, .strides = {3, 0, 0}});
  const int32_t row = b.Iota(places, MicroLevel::kKept, {.offset = -1, .strides = {0, 4, 1}});
  const int32_t least = b.Load(dtype, MicroLevel::kKept, {.strides = {0, 0, 1}});
  const int32_t masked = b.Select(b.Compare(CompareDirection::kLe, place, row), x, least);
  const int32_t largest = b.Reduce(ReduceKind::kMax, masked);
  const int32_t weights = b.Unary(CoreOp::kExp, b.Binary(CoreOp::kSubtract, masked, largest));
  b.Result(b.Binary(CoreOp::kDivide, weights, b.Reduce(ReduceKind::kSum, weights)));
  return b.Build();
}

TEST(JitRowsTest, IntegersAlongRowsAndAcross) {
  const bool has_rows = BestJitIsa() == JitIsa::kAvx512;
  EXPECT_EQ(IsRows(Fused(MaskedProgram(256, 64, 2, DType::kF32, DType::kI32))), has_rows);
  ForEachJitIsa([] {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      for (const DType places : {DType::kI32, DType::kF32, DType::kI64}) {
        for (const int64_t length : {1, 31, 256, 300, 513}) {
          const std::vector<Literal> tensors = {Random(dtype, length * 70 * 3, Values::kModest, 1),
                                                Random(dtype, 3, Values::kModest, 2)};
          const std::string what = absl::StrCat("rows of ", length, " ", Name(dtype), " by ", Name(places));
          if (!ExpectSameBits(MaskedProgram(length, 70, 3, dtype, places), tensors, what)) return;
        }
      }
    }
  });
}

// More rows than integers are written down for at a time.
TEST(JitRowsTest, IntegersOfManyRowsOnAnyNumberOfThreads) {
  const MicroProgram program = MaskedProgram(64, 1500, 3, DType::kF32, DType::kI32);
  const std::vector<Literal> tensors = {Random(DType::kF32, 64 * 1500 * 3, Values::kModest, 1),
                                        Random(DType::kF32, 3, Values::kModest, 2)};
  const auto want = Fused(program, kSteps).Run(tensors, 2);
  const Fused code(program);
  EXPECT_EQ(code.Run(tensors, 1), want);
  EXPECT_EQ(code.Run(tensors, 3), want);
}

// The maximum of a row with NaN is found in another way than that of its neighbours; zeros have signs.
TEST(JitRowsTest, NanAndZerosAmongRowsWithout) {
  ForEachJitIsa([] {
    constexpr int64_t kLength = 600;
    for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
      MicroBuilder b = RowsBuilder(kLength, kFewRows);
      const int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
      const int32_t order = b.Reduce(kind, x);
      b.Result(order);
      b.Result(b.Reduce(ReduceKind::kSum, b.Unary(CoreOp::kExp, b.Binary(CoreOp::kSubtract, x, order))));
      const MicroProgram program = b.Build();
      for (const int64_t at : {0, 17, 255, 300, 575, 599}) {
        for (const float special : {std::nanf("1"), -std::nanf("2"), INFINITY, -INFINITY, -0.0f}) {
          Literal literal = Random(DType::kF32, kLength * kFewRows, Values::kModest, 7);
          float* const values = reinterpret_cast<float*>(literal.mutable_data());
          for (int64_t i = 0; i < kLength; ++i) values[kLength + i] = i % 2 == 0 ? 0.0f : -0.0f;
          for (const int64_t row : {int64_t{1}, int64_t{3}}) values[row * kLength + at] = special;
          if (!ExpectSameBits(program, {literal}, absl::StrCat(special, " at ", at))) return;
        }
      }
    }
  });
}

// Rows along several axes, with gaps between them or backwards; elements of a row that are read, and written.
TEST(JitRowsTest, RowsThatAreNotDense) {
  ForEachJitIsa([] {
    constexpr int64_t kLength = 300, kGap = 310;
    for (const bool backwards : {false, true}) {
      MicroBuilder b({{.size = kLength, .is_reduced = true}, {.size = 3}, {.size = 4}});
      const int64_t stride = backwards ? -kGap : kGap;
      const int32_t x = b.Load(DType::kF32, MicroLevel::kFull,
                               {.offset = backwards ? 2 * kGap : 0, .strides = {1, stride, 4 * kGap}});
      const int32_t scale = b.Load(DType::kF32, MicroLevel::kFull, {.strides = {1, 0, 0}});
      const int32_t shift = b.Load(DType::kF16, MicroLevel::kKept);
      const int32_t sum = b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, x, scale));
      const int32_t shifted = b.Binary(CoreOp::kAdd, sum, b.Convert(DType::kF32, shift));
      b.Result(b.Compare(CompareDirection::kGt, x, shifted));
      b.Result(b.Convert(DType::kBF16, shifted));
      b.Result(b.Convert(DType::kF16, b.Binary(CoreOp::kSubtract, x, b.Unary(CoreOp::kTanh, shifted))));
      const std::vector<Literal> tensors = {Random(DType::kF32, 16 * kGap, Values::kModest, 1),
                                            Random(DType::kF32, kLength, Values::kModest, 2),
                                            Random(DType::kF16, 12, Values::kModest, 3)};
      if (!ExpectSameBits(b.Build(), tensors, backwards ? "backwards" : "with gaps")) return;
    }
  });
}

// A stage that stores what it folds, calls of functions beside folds, more folds than registers.
TEST(JitRowsTest, StagesThatStoreCallAndFoldMuch) {
  ForEachJitIsa([] {
    for (const int64_t length : {200, 333, 512}) {
      for (const DType dtype : {DType::kF32, DType::kF64}) {
        MicroBuilder b = RowsBuilder(length, kFewRows);
        const int32_t x = b.Load(dtype, MicroLevel::kFull);
        const int32_t y = b.Unary(CoreOp::kTanh, x);
        const int32_t largest = b.Reduce(ReduceKind::kMax, y);
        const int32_t total = b.Reduce(ReduceKind::kSum, y);
        b.Result(y);
        b.Result(b.Binary(CoreOp::kSubtract, largest, total));
        const int32_t z = b.Binary(CoreOp::kAdd, x, largest);
        int32_t all = total;
        for (const ReduceKind kind :
             {ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kSum, ReduceKind::kProduct, ReduceKind::kMax}) {
          all = b.Binary(CoreOp::kAdd, all, b.Reduce(kind, b.Binary(CoreOp::kMultiply, z, all == total ? x : z)));
        }
        b.Result(all);
        b.Result(b.Unary(CoreOp::kLog, b.Binary(CoreOp::kDivide, z, all)));
        const MicroProgram program = b.Build();
        for (const Values values : {Values::kModest, Values::kEdges}) {
          const Literal operand = Random(dtype, length * kFewRows, values, 5);
          if (!ExpectSameBits(program, {operand}, absl::StrCat(length, " ", Name(dtype)))) return;
        }
      }
    }
  });
}

// Returns a dtype that code converts to it.
DType ShiftDType(DType dtype) { return dtype == DType::kC128 ? DType::kF64 : DType::kF32; }

// A product of broadcasts, batched: x(i, k) y(j, k), and what is added for each row. Rows along i.
MicroProgram OuterProduct(DType dtype, int64_t length, int64_t columns, int64_t batch) {
  MicroBuilder b({{.size = length}, {.size = columns}, {.size = batch}});
  const int32_t x = b.Load(dtype, MicroLevel::kFull, {.strides = {1, 0, length}});
  const int32_t y = b.Load(dtype, MicroLevel::kFull, {.strides = {0, 1, columns}});
  const int32_t shift = b.Load(ShiftDType(dtype), MicroLevel::kFull, {.offset = batch - 1, .strides = {0, 0, -1}});
  b.Result(b.Binary(CoreOp::kAdd, b.Binary(CoreOp::kMultiply, x, y), b.Convert(dtype, shift)));
  return b.Build();
}

std::vector<Literal> OuterOperands(DType dtype, int64_t length, int64_t columns, int64_t batch) {
  return {Random(dtype, length * batch, Values::kEdges, 11), Random(dtype, columns * batch, Values::kEdges, 12),
          Random(ShiftDType(dtype), batch, Values::kModest, 13)};
}

TEST(JitRowsTest, ElementsOfARowInMapsOfBroadcasts) {
  ForEachJitIsa([] {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI64, DType::kC64, DType::kC128}) {
      for (const int64_t length : {1, 2, 8, 12, 16, 40, 63, 255, 256, 257, 300, 511, 1023, 4099}) {
        const std::string what = absl::StrCat("rows of ", length, " ", Name(dtype));
        const MicroProgram program = OuterProduct(dtype, length, 5, 3);
        if (!ExpectSameBits(program, OuterOperands(dtype, length, 5, 3), what)) return;
      }
    }
  });
}

TEST(JitRowsTest, MapsOfSeveralWidths) {
  ForEachJitIsa([] {
    for (const auto& [wide, narrow] : {std::pair(DType::kC128, DType::kF32), std::pair(DType::kF64, DType::kBF16)}) {
      for (const int64_t length : {8, 24, 256, 258, 300}) {
        MicroBuilder b({{.size = length}, {.size = 40}});
        const int32_t x = b.Load(wide, MicroLevel::kFull);
        const int32_t y = b.Load(wide, MicroLevel::kFull, {.strides = {0, 1}});
        const int32_t u = b.Load(narrow, MicroLevel::kFull);
        const int32_t v = b.Load(narrow, MicroLevel::kFull, {.strides = {0, 1}});
        b.Result(b.Binary(CoreOp::kMultiply, x, y));
        b.Result(b.Binary(CoreOp::kMultiply, u, b.Unary(CoreOp::kAbs, v)));
        const std::vector<Literal> tensors = {
            Random(wide, length * 40, Values::kEdges, 1), Random(wide, 40, Values::kEdges, 2),
            Random(narrow, length * 40, Values::kEdges, 3), Random(narrow, 40, Values::kEdges, 4)};
        if (!ExpectSameBits(b.Build(), tensors,
                            absl::StrCat("rows of ", length, " ", Name(wide), " and ", Name(narrow))))
          return;
      }
    }
  });
}

TEST(JitRowsTest, AreUsedForMapsOfBroadcasts) {
  const bool has_rows = BestJitIsa() != JitIsa::kNone;
  for (const int64_t length : {8, 16, 100, 256, 1000, 4096}) {
    EXPECT_EQ(IsRows(Fused(OuterProduct(DType::kF64, length, 64, 16))), has_rows);
    EXPECT_EQ(IsRows(Fused(OuterProduct(DType::kC128, length, 64, 16))), has_rows);
    EXPECT_FALSE(IsRows(Fused(OuterProduct(DType::kF64, length, 64, 16), kSteps)));
  }
  EXPECT_FALSE(IsRows(Fused(OuterProduct(DType::kC128, 257, 16, 4))));  // no whole vectors
  EXPECT_FALSE(IsRows(Fused(OuterProduct(DType::kF64, 4, 640, 16))));   // short rows
  EXPECT_FALSE(IsRows(Fused(OuterProduct(DType::kF64, 65536, 2, 2))));  // more than a tile
}

// Rows that are written over the operand that they are read from; leaves that are read across, and numbers.
TEST(JitRowsTest, MapsThatWriteOverAnOperandOrReadAcross) {
  ForEachJitIsa([] {
    constexpr int64_t kLength = 301, kColumns = 40;
    MicroBuilder over({{.size = kLength}, {.size = kColumns}});
    const int32_t x = over.Load(DType::kF64, MicroLevel::kFull);
    const int32_t scale = over.Load(DType::kF64, MicroLevel::kFull, {.strides = {0, 1}});
    over.Result(over.Unary(CoreOp::kExp, over.Binary(CoreOp::kMultiply, x, scale)));
    const std::vector<Literal> tensors = {Random(DType::kF64, kLength * kColumns, Values::kModest, 1),
                                          Random(DType::kF64, kColumns, Values::kModest, 2)};
    if (!ExpectSameBits(over.Build(), tensors, "over an operand")) return;

    MicroBuilder across({{.size = kLength}, {.size = kColumns}});
    const int32_t turned = across.Load(DType::kF64, MicroLevel::kFull, {.strides = {kColumns, 1}});
    const int32_t element = across.Load(DType::kF64, MicroLevel::kFull, {.strides = {0, 1}});
    const int32_t number = across.Iota(DType::kF64, MicroLevel::kFull, {.strides = {0, 1}});
    across.Result(element);
    across.Result(across.Binary(CoreOp::kMultiply, across.Binary(CoreOp::kAdd, turned, element), number));
    ExpectSameBits(across.Build(), tensors, "across");
  });
}

// Results that are stored past the cache, on any number of threads; rows that are no whole lines.
TEST(JitRowsTest, BigMapsOfBroadcastsOnAnyNumberOfThreads) {
  for (const int64_t length : {2048, 2047}) {
    const MicroProgram program = OuterProduct(DType::kF64, length, 256, 6);
    const std::vector<Literal> tensors = OuterOperands(DType::kF64, length, 256, 6);
    const auto want = Fused(program, kSteps).Run(tensors, 2);
    const Fused code(program);
    EXPECT_EQ(code.Run(tensors, 1), want);
    EXPECT_EQ(code.Run(tensors, 3), want);
  }
}

// Results that are stored past the cache, on any number of threads.
TEST(JitRowsTest, BigResultsOnAnyNumberOfThreads) {
  constexpr int64_t kLength = 1024, kMany = 8192;
  const MicroProgram program = SoftmaxProgram(kLength, kMany, DType::kF32);
  const std::vector<Literal> tensors = {Random(DType::kF32, kLength * kMany, Values::kModest, 9)};
  const Fused code(program);
  const auto want = Fused(program, kSteps).Run(tensors, 2);
  EXPECT_EQ(code.Run(tensors, 1), want);
  EXPECT_EQ(code.Run(tensors, 3), want);
  EXPECT_EQ(code.Run(tensors, 2, {0, 0}), want);
}

}  // namespace
}  // namespace tensord::cpu
