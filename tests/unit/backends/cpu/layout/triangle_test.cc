#include "backends/cpu/layout/kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/unit/backends/cpu/kernel_call.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastOffset = std::numeric_limits<int64_t>::min(), kMostOffset = std::numeric_limits<int64_t>::max();

void ExpectTriangles(DType dtype, const Ints& shape, const Ints& matrix_axes, int64_t diagonal) {
  for (CoreOp op : {CoreOp::kTril, CoreOp::kTriu}) {
    Call call(op, {Numbered(dtype, shape)}, shape);
    call.attrs.Set("diagonal", diagonal).Set("matrix_axes", matrix_axes);
    SCOPED_TRACE(testing::Message() << "diagonal " << diagonal << ", matrix axes "
                                    << testing::PrintToString(matrix_axes));
    ExpectReference(call, &MakeTriangleKernel);
  }
}

TEST(TriangleKernelTest, AnyAxesAndDiagonals) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const Ints shape = RandomShape(random, 2 + random() % 4);
    const size_t row = random() % shape.size(), column = (row + 1 + random() % (shape.size() - 1)) % shape.size();
    ExpectTriangles(RandomDType(random), shape, {static_cast<int64_t>(row), static_cast<int64_t>(column)},
                    static_cast<int64_t>(random() % 17) - 8);
  }
}

TEST(TriangleKernelTest, DiagonalsOutsideOfTheMatrix) {
  for (int64_t diagonal : {kLeastOffset, kLeastOffset + 1, int64_t{-5}, int64_t{-4}, int64_t{-3}, int64_t{5},
                           int64_t{6}, int64_t{7}, kMostOffset - 1, kMostOffset}) {
    for (const Ints& shape : {Ints{4, 6}, Ints{6, 4}, Ints{0, 3}, Ints{3, 0}, Ints{1, 1}, Ints{4, 6, 0}}) {
      ExpectTriangles(DType::kI32, shape, {}, diagonal);
      ExpectTriangles(DType::kC128, shape, {1, 0}, diagonal);
    }
  }
}

// Tasks begin and end inside of rows, slabs and matrices.
TEST(TriangleKernelTest, SeveralTasks) {
  struct Case {
    Ints shape, axes;
  };
  const Case cases[] = {{{1001, 301}, {0, 1}},   {{1001, 301}, {1, 0}},   {{90001, 3}, {0, 1}},   {{3, 90001}, {0, 1}},
                        {{5, 200, 301}, {1, 2}}, {{5, 200, 301}, {2, 0}}, {{7, 9000, 5}, {0, 2}}, {{300000, 1}, {0, 1}},
                        {{30, 70, 200}, {0, 1}}, {{3, 3, 9001}, {1, 0}},  {{1, 1, 70001}, {0, 1}}};
  for (const Case& c : cases) {
    for (int64_t diagonal : {0, 1, -40}) {
      ExpectTriangles(DType::kF32, c.shape, c.axes, diagonal);
      ExpectTriangles(DType::kBool, c.shape, c.axes, diagonal);
    }
  }
}

// NaN and infinity times zero would not be zero: what is left out is cleared, not multiplied.
TEST(TriangleKernelTest, ClearsEveryBit) {
  for (const Ints& shape : {Ints{3, 3}, Ints{200, 200}}) {
    Call call(CoreOp::kTril, {Numbered(DType::kF64, shape)}, shape);
    std::memset(call.operands[0].mutable_data(), 0xff, call.operands[0].bytes().size());
    const Literal result = RunKernel(&MakeTriangleKernel, call, 2);
    const int64_t rows = shape[0];
    EXPECT_NE(result.values<double>()[0], result.values<double>()[0]);
    EXPECT_EQ(result.values<double>()[static_cast<size_t>(rows)], 0);
    EXPECT_FALSE(std::signbit(result.values<double>()[static_cast<size_t>(rows)]));
  }
}

}  // namespace
}  // namespace tensord::cpu
