#include "backends/cpu/layout/kernels.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/contraction/kernels.h"
#include "backends/cpu/reduce/kernels.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/literal.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/kernel_call.h"

namespace tensord::cpu {
namespace {

void ExpectReference(const Call& call) { ExpectReference(call, &MakeLayoutKernel); }

TEST(LayoutKernelTest, Transpose) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    const Ints shape = RandomShape(random, random() % 6);
    Ints permutation(shape.size()), result;
    std::iota(permutation.begin(), permutation.end(), 0);
    std::shuffle(permutation.begin(), permutation.end(), random);
    for (int64_t axis : permutation) result.push_back(shape[static_cast<size_t>(axis)]);
    Call call(CoreOp::kTranspose, {Numbered(RandomDType(random), shape)}, result);
    call.attrs.Set("permutation", permutation);
    ExpectReference(call);
  }
}

TEST(LayoutKernelTest, ReshapeInEitherOrder) {
  const std::pair<Ints, Ints> shapes[] = {{{}, {1, 1}},      {{6}, {2, 3}},       {{2, 3, 4}, {4, 6}},
                                          {{24}, {2, 3, 4}}, {{4, 3, 2}, {3, 8}}, {{0, 5}, {5, 0, 2}},
                                          {{1, 7}, {7}},     {{6, 4}, {4, 6}},    {{120, 70}, {84, 100}}};
  for (const auto& [from, to] : shapes) {
    for (Order order : {Order::kUnspecified, Order::kColumnMajor, Order::kRowMajor}) {
      for (DType dtype : {DType::kBool, DType::kF16, DType::kF32, DType::kC128}) {
        Call call(CoreOp::kReshape, {Numbered(dtype, from)}, to);
        call.attrs.Set("order", static_cast<int64_t>(order));
        ExpectReference(call);
      }
    }
  }
}

TEST(LayoutKernelTest, BroadcastInDim) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const Ints result = RandomShape(random, random() % 6);
    Ints shape, dimensions;
    for (size_t i = 0; i < result.size(); ++i) {
      if (random() % 2 == 0) dimensions.push_back(static_cast<int64_t>(i));
    }
    std::shuffle(dimensions.begin(), dimensions.end(), random);
    for (int64_t axis : dimensions) shape.push_back(random() % 3 == 0 ? 1 : result[static_cast<size_t>(axis)]);
    Call call(CoreOp::kBroadcastInDim, {Numbered(RandomDType(random), shape)}, result);
    call.attrs.Set("broadcast_dimensions", dimensions);
    ExpectReference(call);
  }
}

TEST(LayoutKernelTest, Slice) {
  std::mt19937 random(3);
  for (int round = 0; round < 150; ++round) {
    const Ints shape = RandomShape(random, random() % 5);
    Ints starts, limits, strides, result;
    for (int64_t size : shape) {
      starts.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(size + 1)));
      limits.push_back(starts.back() +
                       static_cast<int64_t>(random() % static_cast<uint64_t>(size - starts.back() + 1)));
      strides.push_back(random() % 10 == 0 ? INT64_MAX : 1 + static_cast<int64_t>(random() % 3));
      const int64_t length = limits.back() - starts.back();
      result.push_back(length / strides.back() + (length % strides.back() != 0 ? 1 : 0));
    }
    Call call(CoreOp::kSlice, {Numbered(RandomDType(random), shape)}, result);
    call.attrs.Set("start_indices", starts).Set("limit_indices", limits).Set("strides", strides);
    ExpectReference(call);
  }
}

TEST(LayoutKernelTest, Reverse) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const Ints shape = RandomShape(random, random() % 6);
    Ints dimensions;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (random() % 2 == 0) dimensions.push_back(static_cast<int64_t>(i));
    }
    Call call(CoreOp::kReverse, {Numbered(RandomDType(random), shape)}, shape);
    call.attrs.Set("dimensions", dimensions);
    ExpectReference(call);
  }
}

TEST(LayoutKernelTest, Concatenate) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    Ints shape = RandomShape(random, 1 + random() % 4);
    const DType dtype = RandomDType(random);
    const size_t joined = random() % shape.size();
    std::vector<Literal> operands;
    int64_t total = 0;
    for (size_t k = 0; k < 1 + random() % 4; ++k) {
      shape[joined] = static_cast<int64_t>(random() % 5);
      total += shape[joined];
      operands.push_back(Numbered(dtype, shape));
    }
    shape[joined] = total;
    Call call(CoreOp::kConcatenate, std::move(operands), shape);
    call.attrs.Set("dimension", static_cast<int64_t>(joined));
    ExpectReference(call);
  }
}

TEST(LayoutKernelTest, PadWithNegativeEdgesAndInterior) {
  std::mt19937 random(6);
  int done = 0;
  while (done < 400) {
    const Ints shape = RandomShape(random, random() % 5);
    Ints low, high, interior, result;
    bool valid = true;
    const bool has_interior = random() % 2 == 0;
    for (int64_t size : shape) {
      low.push_back(static_cast<int64_t>(random() % 9) - 4);
      high.push_back(static_cast<int64_t>(random() % 9) - 4);
      interior.push_back(has_interior && random() % 2 == 0 ? static_cast<int64_t>(random() % 4) : 0);
      result.push_back(size * (interior.back() + 1) - std::min<int64_t>(size, 1) * interior.back() + low.back() +
                       high.back());
      valid = valid && result.back() >= 0;
    }
    if (!valid) continue;
    ++done;
    const DType dtype = RandomDType(random);
    Call call(CoreOp::kPad, {Numbered(dtype, shape), Numbered(dtype, {})}, result);
    call.attrs.Set("edge_padding_low", low).Set("edge_padding_high", high).Set("interior_padding", interior);
    ExpectReference(call);
  }
}

TEST(LayoutKernelTest, PadBordersOfALargeTensor) {
  Call call(CoreOp::kPad, {Numbered(DType::kF32, {300, 200, 3}), Numbered(DType::kF32, {})}, {303, 198, 6});
  call.attrs.Set("edge_padding_low", Ints{1, -3, 2}).Set("edge_padding_high", Ints{2, 1, 1});
  ExpectReference(call);
}

TEST(LayoutKernelTest, PadThatCropsEverything) {
  Call call(CoreOp::kPad, {Numbered(DType::kI32, {4}), Numbered(DType::kI32, {})}, {3});
  call.attrs.Set("edge_padding_low", Ints{-9}).Set("edge_padding_high", Ints{8});
  ExpectReference(call);
  Call extreme(CoreOp::kPad, {Numbered(DType::kI32, {4}), Numbered(DType::kI32, {})}, {3});
  extreme.attrs.Set("edge_padding_low", Ints{INT64_MIN}).Set("edge_padding_high", Ints{INT64_MAX});
  const Literal result = RunKernel(&MakeLayoutKernel, extreme, 1);
  EXPECT_EQ(result.values<int32_t>()[0], extreme.operands[1].values<int32_t>()[0]);
}

TEST(ReduceKernelTest, EveryKindEqualsTheReference) {
  for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProduct, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kAnd,
                          ReduceKind::kOr}) {
    const bool is_logical = kind == ReduceKind::kAnd || kind == ReduceKind::kOr;
    for (DType dtype : {DType::kBool, DType::kI32, DType::kI64}) {
      if (is_logical && dtype != DType::kBool) continue;
      Call call(CoreOp::kReduce, {Numbered(dtype, {5, 3, 4})}, {3});
      call.attrs.Set("kind", static_cast<int64_t>(kind)).Set("dimensions", Ints{2, 0});
      ExpectReference(call, &MakeReduceKernel);
    }
  }
}

TEST(DotKernelTest, EqualsTheReference) {
  Call call(CoreOp::kDotGeneral, {Numbered(DType::kI32, {4, 3, 5}), Numbered(DType::kI32, {2, 5, 4, 6})}, {3, 2, 6, 4});
  call.result_dtype = DType::kI64;
  call.attrs.Set("lhs_contracting_dimensions", Ints{2})
      .Set("rhs_contracting_dimensions", Ints{1})
      .Set("lhs_batching_dimensions", Ints{0})
      .Set("rhs_batching_dimensions", Ints{2})
      .Set("result_dtype", DType::kI64);
  ExpectReference(call, &MakeDotKernel);
}

TEST(LayoutKernelTest, OtherOpsAreRefused) {
  Call call(CoreOp::kReverse, {Numbered(DType::kF32, {2})}, {2});
  EXPECT_EQ(MakeReduceKernel(Bind(call)).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(MakeDotKernel(Bind(call)).status().code(), absl::StatusCode::kUnimplemented);
  Call logical(CoreOp::kReduce, {Numbered(DType::kF32, {2})}, {});
  logical.attrs.Set("kind", static_cast<int64_t>(ReduceKind::kAnd)).Set("dimensions", Ints{0});
  EXPECT_EQ(MakeReduceKernel(Bind(logical)).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(MakeLayoutKernel(Bind(logical)).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(LayoutKernelTest, ExtractDiag) {
  std::mt19937 random(31);
  for (int round = 0; round < 200; ++round) {
    Ints shape = RandomShape(random, 2 + random() % 5);
    const size_t a = random() % shape.size(), b = (a + 1 + random() % (shape.size() - 1)) % shape.size();
    shape[b] = shape[a];
    Ints result = shape;
    result.erase(result.begin() + static_cast<ptrdiff_t>(b));
    Call call(CoreOp::kExtractDiag, {Numbered(RandomDType(random), shape)}, result);
    call.attrs.Set("axis_a", static_cast<int64_t>(a)).Set("axis_b", static_cast<int64_t>(b));
    ExpectReference(call);
  }
}

TEST(LayoutKernelTest, EmbedDiag) {
  std::mt19937 random(32);
  for (int round = 0; round < 200; ++round) {
    const Ints shape = round == 0 ? Ints{700} : round == 1 ? Ints{3, 300} : RandomShape(random, 1 + random() % 5);
    const size_t a = random() % shape.size(), b = random() % (shape.size() + 1);
    Ints result = shape;
    result.insert(result.begin() + static_cast<ptrdiff_t>(b), shape[a]);
    Call call(CoreOp::kEmbedDiag, {Numbered(RandomDType(random), shape)}, result);
    call.attrs.Set("axis_a", static_cast<int64_t>(a)).Set("axis_b", static_cast<int64_t>(b));
    ExpectReference(call);
  }
}

TEST(LayoutKernelTest, PadToMatch) {
  std::mt19937 random(33);
  for (int round = 0; round < 200; ++round) {
    const Ints shape = round == 0 ? Ints{30, 1, 500} : RandomShape(random, 1 + random() % 5);
    const Ints reference = round == 0 ? Ints{9, 90, 9} : RandomShape(random, shape.size());
    const size_t axis = round == 0 ? 1 : random() % shape.size();
    Ints result = shape;
    result[axis] = std::max(shape[axis], reference[axis]);
    const DType dtype = RandomDType(random);
    Call call(CoreOp::kPadToMatch, {Numbered(dtype, shape), Numbered(RandomDType(random), reference)}, result);
    call.attrs.Set("dimension", static_cast<int64_t>(axis));
    ExpectReference(call);
  }
}

}  // namespace
}  // namespace tensord::cpu
