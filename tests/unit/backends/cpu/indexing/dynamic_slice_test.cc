#include "backends/cpu/indexing/kernels.h"

#include <algorithm>
#include <limits>
#include <random>

#include "tests/unit/backends/cpu/kernel_call.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

Literal Starts(DType dtype, const Ints& values) {
  Literal starts = *Literal::Create({dtype, {static_cast<int64_t>(values.size())}});
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kI64) {
      starts.mutable_values<int64_t>()[i] = values[i];
    } else {
      using L = std::numeric_limits<int32_t>;
      starts.mutable_values<int32_t>()[i] = static_cast<int32_t>(std::clamp<int64_t>(values[i], L::min(), L::max()));
    }
  }
  return starts;
}

Ints RandomStarts(std::mt19937& random, size_t rank) {
  constexpr int64_t kEdges[] = {kMin, kMin + 1, kMax, kMax - 1, -1, 0, 1};
  Ints starts(rank);
  for (int64_t& start : starts) {
    start = random() % 3 == 0 ? kEdges[random() % std::size(kEdges)] : static_cast<int64_t>(random() % 10) - 1;
  }
  return starts;
}

Ints RandomWindow(std::mt19937& random, const Ints& shape) {
  Ints window(shape);
  for (int64_t& size : window) size = static_cast<int64_t>(random() % static_cast<uint64_t>(size + 1));
  return window;
}

// Unset, or any order of the axes.
Ints RandomAxes(std::mt19937& random, size_t rank) {
  Ints axes(random() % 2 == 0 ? 0 : rank);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  std::shuffle(axes.begin(), axes.end(), random);
  return axes;
}

TEST(DynamicSliceKernelTest, AnyWindowAndStart) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    const Ints shape = RandomShape(random, random() % 6), window = RandomWindow(random, shape);
    const DType index = random() % 2 == 0 ? DType::kI32 : DType::kI64;
    Call call(CoreOp::kDynamicSlice,
              {Numbered(RandomDType(random), shape), Starts(index, RandomStarts(random, shape.size()))}, window);
    call.attrs.Set("slice_sizes", window).Set("start_axes", RandomAxes(random, shape.size()));
    ExpectReference(call, &MakeDynamicSliceKernel);
  }
}

TEST(DynamicSliceKernelTest, SeveralTasks) {
  for (const Ints& window : {Ints{300, 1, 500}, Ints{1, 7, 600}, Ints{999, 2, 601}}) {
    Call call(CoreOp::kDynamicSlice, {Numbered(DType::kF32, {1000, 7, 601}), Starts(DType::kI64, {kMax, 3, -1})},
              window);
    call.attrs.Set("slice_sizes", window);
    ExpectReference(call, &MakeDynamicSliceKernel);
  }
}

TEST(DynamicUpdateSliceKernelTest, AnyWindowAndStart) {
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    const Ints shape = RandomShape(random, random() % 6), window = RandomWindow(random, shape);
    const DType index = random() % 2 == 0 ? DType::kI32 : DType::kI64, dtype = RandomDType(random);
    Call call(CoreOp::kDynamicUpdateSlice,
              {Numbered(dtype, shape), Numbered(dtype, window), Starts(index, RandomStarts(random, shape.size()))},
              shape);
    // Not the operand's numbers.
    std::reverse(call.operands[1].mutable_data(), call.operands[1].mutable_data() + call.operands[1].bytes().size());
    call.attrs.Set("start_axes", RandomAxes(random, shape.size()));
    ExpectReference(call, &MakeDynamicUpdateSliceKernel);
  }
}

TEST(DynamicUpdateSliceKernelTest, SeveralTasks) {
  for (const Ints& window : {Ints{300, 1, 500}, Ints{1, 7, 600}, Ints{1000, 7, 601}}) {
    Call call(CoreOp::kDynamicUpdateSlice,
              {Numbered(DType::kF32, {1000, 7, 601}), Numbered(DType::kF32, window), Starts(DType::kI64, {9, 2, kMin})},
              {1000, 7, 601});
    ExpectReference(call, &MakeDynamicUpdateSliceKernel);
  }
}

TEST(DynamicUpdateSliceKernelTest, WritesTheWindowAloneIntoItsOperand) {
  for (const Ints& window : {Ints{2, 3}, Ints{0, 3}, Ints{5, 6}}) {
    Call call(CoreOp::kDynamicUpdateSlice,
              {Numbered(DType::kI64, {5, 6}), Numbered(DType::kI64, window), Starts(DType::kI32, {1, 9})}, {5, 6});
    const Literal want = Reference(call);
    const auto kernel = MakeDynamicUpdateSliceKernel(Bind(call));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    Literal whole = call.operands[0];
    const void* operands[] = {whole.bytes().data(), call.operands[1].bytes().data(), call.operands[2].bytes().data()};
    void* results[] = {whole.mutable_data()};
    ThreadPool pool(1);
    (*kernel)->Run({.operands = operands, .results = results, .scratch = nullptr, .pool = &pool});
    EXPECT_TRUE(whole == want) << testing::PrintToString(window);
  }
}

}  // namespace
}  // namespace tensord::cpu
