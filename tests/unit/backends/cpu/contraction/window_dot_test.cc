#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cpu/contraction/window_dot_kernel.h"
#include "backends/cpu/machine/blas.h"
#include "backends/cpu/matmul/gemm.h"
#include "engine/ir/graph.h"
#include "engine/ir/verifier.h"
#include "engine/ops/affine_dot.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/kernel_call.h"

namespace tensord::cpu {
namespace {

// An affine_dot of whole numbers, which every order of summation adds up exactly.
struct AffineCase {
  Attributes attrs = Attributes(AffineDotOp().attrs);
  std::vector<Literal> operands;
  ConcreteType result;

  std::string Text() const {
    std::string text = absl::StrCat(ToString(operands[0].type()), " ", ToString(operands[1].type()), " to ",
                                    ToString(result), " summed ", attrs.Int("num_summed"));
    for (absl::string_view name : {"sizes", "lhs_starts", "lhs_steps", "rhs_starts", "rhs_steps"}) {
      absl::StrAppend(&text, " ", name, "=", absl::StrJoin(attrs.Ints(name), ","));
    }
    return text;
  }
};

// Returns starts and steps of an operand that the indices in `moves` move, and sizes that mostly hold the read
// elements.
Shape RandomRead(const Ints& sizes, const std::vector<bool>& moves, absl::string_view side, std::mt19937_64& random,
                 Attributes* attrs) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  const size_t rank = 1 + random() % 4;
  Ints starts(rank), steps(rank * sizes.size());
  Shape shape(rank, 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!moves[i]) continue;
    const size_t axis = random() % rank;
    const int64_t step = below(4) == 0 ? 1 + below(3) : 1;
    steps[i * rank + axis] = step;
    shape[axis] += step * (sizes[i] - 1);
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    switch (random() % 6) {
      case 0:
        starts[axis] = -below(3);
        break;
      case 1:
        starts[axis] = below(3);
        break;
      case 2:
        shape[axis] += below(3);
        break;
      case 3:
        starts[axis] = -1;
        shape[axis] = std::max<int64_t>(1, shape[axis] - 2);
        break;
      default:
        break;
    }
  }
  attrs->Set(absl::StrCat(side, "_starts"), starts).Set(absl::StrCat(side, "_steps"), steps);
  return shape;
}

AffineCase RandomCase(DType dtype, int64_t most, std::mt19937_64& random) {
  enum Role { kRow, kColumn, kBatched, kSum };
  std::vector<Role> roles;
  for (size_t n = random() % 4; n > 0; --n) roles.push_back(kRow);
  for (size_t n = random() % 3; n > 0; --n) roles.push_back(kColumn);
  for (size_t n = random() % 4 == 0 ? 1 : 0; n > 0; --n) roles.push_back(kBatched);
  std::shuffle(roles.begin(), roles.end(), random);
  const size_t of_result = roles.size();
  for (size_t n = random() % 4; n > 0; --n) roles.push_back(kSum);
  Ints sizes;
  std::vector<bool> in_lhs, in_rhs;
  int64_t work = 1;
  for (const Role role : roles) {
    const int64_t limit = std::max<int64_t>(1, std::min<int64_t>(random() % 3 == 0 ? 60 : 8, most / work));
    sizes.push_back(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(limit)));
    work *= sizes.back();
    in_lhs.push_back(role != kColumn);
    in_rhs.push_back(role != kRow);
  }
  AffineCase made;
  const Shape lhs = RandomRead(sizes, in_lhs, "lhs", random, &made.attrs);
  const Shape rhs = RandomRead(sizes, in_rhs, "rhs", random, &made.attrs);
  made.operands = {RandomLiteral({dtype, lhs}, Values::kIntegers, &random),
                   RandomLiteral({dtype, rhs}, Values::kIntegers, &random)};
  made.attrs.Set("lhs_conj", static_cast<int64_t>(random() % 2)).Set("rhs_conj", static_cast<int64_t>(random() % 2));
  made.attrs.Set("num_summed", static_cast<int64_t>(sizes.size() - of_result));
  made.result = {dtype, Shape(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(of_result))};
  made.attrs.Set("shape", Ints(made.result.shape.begin(), made.result.shape.end())).Set("sizes", std::move(sizes));
  return made;
}

void ExpectInferred(const AffineCase& c) {
  Graph graph;
  for (const Literal& operand : c.operands) graph.AddInput("x", ToTensorType(operand.type()));
  graph.AddNode({.name = "y", .op = &AffineDotOp(), .attrs = c.attrs, .operands = {{0}, {1}}});
  const auto guards = InferTypes(&graph);
  ASSERT_TRUE(guards.ok()) << guards.status();
  EXPECT_TRUE(graph.type({2}) == ToTensorType(c.result));
}

Literal ReferenceOf(const AffineCase& c) {
  Literal result = *Literal::Create(c.result);
  const Literal* const operands[] = {&c.operands[0], &c.operands[1]};
  const absl::Status status = AffineDotOp().reference.get()({c.attrs, operands, absl::MakeSpan(&result, 1)});
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

Literal RunOnCpu(const AffineCase& c, int threads) {
  Literal result = *Literal::Create(c.result);
  std::memset(result.mutable_data(), 0x5a, result.bytes().size());
  BoundInstruction bound = {.op = &AffineDotOp(), .attrs = &c.attrs, .results = {c.result}};
  for (const Literal& operand : c.operands) bound.operands.push_back(operand.type());
  const auto kernel = MakeAffineDotKernel(bound);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return result;
  const auto memory = [](std::vector<char>& storage, int64_t bytes) {
    storage.assign(static_cast<size_t>(bytes) + 64, 0x55);
    return storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  };
  std::vector<char> scratch, workspace;
  const void* const operands[] = {c.operands[0].bytes().data(), c.operands[1].bytes().data()};
  void* const results[] = {result.mutable_data()};
  ThreadPool pool(threads);
  (*kernel)->Run({.operands = operands,
                  .results = results,
                  .scratch = memory(scratch, (*kernel)->scratch_bytes()),
                  .pool = &pool,
                  .workspace = memory(workspace, (*kernel)->workspace_bytes())});
  return result;
}

void ExpectReference(const AffineCase& c) {
  ExpectInferred(c);
  const Literal expected = ReferenceOf(c);
  for (int threads : {1, 3}) {
    ASSERT_EQ(Difference(RunOnCpu(c, threads), expected, {}), "") << threads << " threads: " << c.Text();
  }
}

TEST(AffineDotKernel, SmallOnesOfEveryDType) {
  UseSerialBlas();
  std::mt19937_64 random(1);
  for (DType dtype : kAllDTypes) {
    for (int round = 0; round < 150; ++round) {
      ExpectReference(RandomCase(dtype, 4000, random));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Includes products by BLAS, which must not be given matrices that overlap themselves.
TEST(AffineDotKernel, LargeOnesOnEveryInstructionSet) {
  UseSerialBlas();
  ForEachInstructionSet([](absl::string_view) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 60; ++round) {
      for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kBF16}) {
        ExpectReference(RandomCase(dtype, 200000, random));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// A convolution of an image of `channels` (x, y, channel, image) or (channel, x, y, image), with zeros around it.
struct Convolution {
  int64_t width, height, channels, images, kernel_width, kernel_height, outputs;
  int64_t stride = 1, dilation = 1, low = 1, high = 1;
  bool channels_first = false;
  bool channels_last_in_kernel = false;  // its elements as (x, y, channel), else (channel, x, y)
};

AffineCase MakeConvolution(const Convolution& c, DType dtype, std::mt19937_64& random) {
  const auto windows = [&](int64_t size, int64_t kernel) {
    return (size + c.low + c.high - c.dilation * (kernel - 1) - 1) / c.stride + 1;
  };
  const size_t x = c.channels_first ? 1 : 0, y = x + 1, channel = c.channels_first ? 0 : 2, image = 3;
  const Ints sizes = {windows(c.width, c.kernel_width),
                      windows(c.height, c.kernel_height),
                      c.outputs,
                      c.images,
                      c.channels,
                      c.kernel_width,
                      c.kernel_height};
  Ints lhs_steps(4 * sizes.size()), rhs_steps(2 * sizes.size()), starts(4);
  const auto step = [&](size_t index, size_t axis) -> int64_t& { return lhs_steps[4 * index + axis]; };
  step(0, x) = step(1, y) = c.stride;
  step(3, image) = step(4, channel) = 1;
  step(5, x) = step(6, y) = c.dilation;
  starts[x] = starts[y] = -c.low;
  const bool last = c.channels_last_in_kernel;
  rhs_steps[2 * 2 + 1] = 1;
  rhs_steps[4 * 2] = last ? c.kernel_width * c.kernel_height : 1;
  rhs_steps[5 * 2] = last ? 1 : c.channels;
  rhs_steps[6 * 2] = last ? c.kernel_width : c.channels * c.kernel_width;
  Shape shape(4);
  shape[x] = c.width, shape[y] = c.height, shape[channel] = c.channels, shape[image] = c.images;
  AffineCase made;
  made.operands = {
      RandomLiteral({dtype, shape}, Values::kIntegers, &random),
      RandomLiteral({dtype, {c.channels * c.kernel_width * c.kernel_height, c.outputs}}, Values::kIntegers, &random)};
  made.result = {dtype, Shape(sizes.begin(), sizes.begin() + 4)};
  made.attrs.Set("num_summed", int64_t{3}).Set("sizes", sizes).Set("shape", Ints(sizes.begin(), sizes.begin() + 4));
  made.attrs.Set("lhs_starts", starts).Set("lhs_steps", lhs_steps);
  made.attrs.Set("rhs_starts", Ints{0, 0}).Set("rhs_steps", rhs_steps);
  return made;
}

TEST(AffineDotKernel, ConvolutionsWithZerosAround) {
  UseSerialBlas();
  ForEachInstructionSet([](absl::string_view) {
    std::mt19937_64 random(3);
    const auto between = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
    };
    for (int round = 0; round < 80; ++round) {
      Convolution c = {.width = between(1, 40), .height = between(1, 9), .channels = between(1, 12)};
      c.images = between(1, 3);
      c.kernel_width = between(1, 4), c.kernel_height = between(1, 3), c.outputs = between(1, 19);
      c.stride = between(1, 2), c.dilation = between(1, 2), c.low = between(0, 4), c.high = between(0, 4);
      c.channels_first = round % 2 == 0;
      if (c.width + c.low + c.high < c.dilation * c.kernel_width) continue;
      if (c.height + c.low + c.high < c.dilation * c.kernel_height) continue;
      for (DType dtype : {DType::kF32, DType::kF64}) {
        ExpectReference(MakeConvolution(c, dtype, random));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// The derivative of a convolution by its weights, whose rows are windows and channels: images (x, y, channel, image)
// and cotangents are summed over all but these.
AffineCase MakeWeightGradient(const Convolution& c, DType dtype, std::mt19937_64& random) {
  const int64_t wide = c.width + c.low + c.high - c.dilation * (c.kernel_width - 1);
  const int64_t tall = c.height + c.low + c.high - c.dilation * (c.kernel_height - 1);
  const Ints sizes = {c.channels, c.kernel_width, c.kernel_height, c.outputs, wide, tall, c.images};
  Ints lhs_steps(4 * sizes.size()), rhs_steps(4 * sizes.size());
  const auto step = [](Ints& steps, size_t index, size_t axis) -> int64_t& { return steps[4 * index + axis]; };
  step(lhs_steps, 0, 2) = 1;
  step(lhs_steps, 1, 0) = step(lhs_steps, 2, 1) = c.dilation;
  step(rhs_steps, 3, 2) = 1;
  for (size_t axis : {0, 1, 3}) {
    const size_t index = axis == 3 ? 6 : 4 + axis;
    step(lhs_steps, index, axis) = step(rhs_steps, index, axis) = 1;
  }
  AffineCase made;
  made.operands = {RandomLiteral({dtype, {c.width, c.height, c.channels, c.images}}, Values::kIntegers, &random),
                   RandomLiteral({dtype, {wide, tall, c.outputs, c.images}}, Values::kIntegers, &random)};
  made.result = {dtype, Shape(sizes.begin(), sizes.begin() + 4)};
  made.attrs.Set("num_summed", int64_t{3}).Set("sizes", sizes).Set("shape", Ints(sizes.begin(), sizes.begin() + 4));
  made.attrs.Set("lhs_starts", Ints{-c.low, -c.low, 0, 0}).Set("lhs_steps", lhs_steps);
  made.attrs.Set("rhs_starts", Ints(4)).Set("rhs_steps", rhs_steps);
  return made;
}

// Includes copies whose channels lie first, and images too small for them.
TEST(AffineDotKernel, DerivativesOfConvolutionsByTheirWeights) {
  UseSerialBlas();
  ForEachInstructionSet([](absl::string_view) {
    std::mt19937_64 random(6);
    const auto between = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
    };
    for (int round = 0; round < 24; ++round) {
      Convolution c = {.width = between(8, 20), .height = between(3, 9), .channels = between(8, 50)};
      c.images = between(1, 3);
      c.kernel_width = between(1, 3), c.kernel_height = between(1, 3), c.outputs = between(1, 19);
      c.dilation = between(1, 2), c.low = between(0, 2), c.high = between(0, 2);
      if (c.width + c.low + c.high < c.dilation * c.kernel_width) continue;
      if (c.height + c.low + c.high < c.dilation * c.kernel_height) continue;
      for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kC64}) {
        ExpectReference(MakeWeightGradient(c, dtype, random));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// Large enough for rows to be packed once for the windows that slide over them.
TEST(AffineDotKernel, ConvolutionsOfManyRows) {
  UseSerialBlas();
  ForEachInstructionSet([](absl::string_view) {
    std::mt19937_64 random(4);
    const auto between = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
    };
    for (int round = 0; round < 24; ++round) {
      Convolution c = {.width = between(20, 40), .height = between(30, 60), .channels = between(1, 9)};
      c.images = between(1, 2);
      c.kernel_width = between(1, 3), c.kernel_height = between(1, 5), c.outputs = between(2, 40);
      c.dilation = between(1, 2), c.low = between(0, 2), c.high = between(0, 2);
      c.channels_first = round % 3 == 0;
      for (DType dtype : {DType::kF32, DType::kF64}) {
        ExpectReference(MakeConvolution(c, dtype, random));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// Channels enough for windows to be read in place: rows that end within vectors, edges with and without zeros, sums in
// several boxes, and channels at distances that crowd the cache, which are packed.
TEST(AffineDotKernel, ConvolutionsOfManyChannels) {
  UseSerialBlas();
  std::mt19937_64 random(5);
  const auto between = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  std::vector<AffineCase> cases;
  std::vector<Literal> references;
  for (int round = 0; round < 16; ++round) {
    Convolution c = {.width = between(9, 70), .height = between(8, 20), .channels = between(8, 16), .images = 1};
    c.kernel_width = between(1, 4), c.kernel_height = between(1, 3), c.outputs = between(8, 16);
    c.dilation = between(1, 2), c.low = between(0, 2), c.high = round % 3 == 0 ? c.low : between(0, 2);
    if (round % 6 == 1) c.kernel_width = c.kernel_height = 3, c.dilation = 1, c.low = c.high = 1, c.images = 2;
    if (round % 8 == 5) c.channels = between(114, 140), c.kernel_height = 3, c.kernel_width = 3, c.width = 57;
    if (round == 7) c.width = 64, c.height = 32, c.channels = 24;
    c.channels_last_in_kernel = round % 3 == 1;
    cases.push_back(MakeConvolution(c, round % 4 < 2 ? DType::kF32 : DType::kF64, random));
    references.push_back(ReferenceOf(cases.back()));
  }
  ForEachInstructionSet([&](absl::string_view) {
    for (size_t i = 0; i < cases.size(); ++i) {
      for (int threads : {1, 3}) {
        ASSERT_EQ(Difference(RunOnCpu(cases[i], threads), references[i], {}), "") << cases[i].Text();
      }
    }
  });
}

// Runs of terms along which the padding ends.
TEST(AffineDotKernel, ConvolutionsOfWideWindows) {
  std::mt19937_64 random(8);
  for (int64_t channels : {1, 9}) {
    for (int64_t kernel_height : {1, 9}) {
      Convolution c = {.width = 40, .height = 12, .channels = channels, .images = 1};
      c.kernel_width = 9, c.kernel_height = kernel_height, c.outputs = 16, c.low = c.high = 4;
      for (DType dtype : {DType::kF32, DType::kF64}) ExpectReference(MakeConvolution(c, dtype, random));
    }
  }
}

// Zeros of the padding are terms like others: an infinite weight makes them NaN.
TEST(AffineDotKernel, PaddingIsMultiplied) {
  std::mt19937_64 random(6);
  const Convolution c = {
      .width = 56, .height = 20, .channels = 8, .images = 1, .kernel_width = 3, .kernel_height = 3, .outputs = 16};
  AffineCase made = MakeConvolution(c, DType::kF32, random);
  made.operands[1].mutable_values<float>()[0] = std::numeric_limits<float>::infinity();
  ExpectReference(made);
}

TEST(AffineDotKernel, ConvolutionsHaveTheSameBitsForAnyThreads) {
  UseSerialBlas();
  std::mt19937_64 random(7);
  for (int64_t padding : {0, 1}) {
    Convolution c = {
        .width = 57, .height = 31, .channels = 20, .images = 3, .kernel_width = 3, .kernel_height = 3, .outputs = 13};
    c.low = c.high = padding;
    AffineCase made = MakeConvolution(c, DType::kF32, random);
    for (Literal& operand : made.operands) operand = RandomLiteral(operand.type(), Values::kModest, &random);
    const Literal alone = RunOnCpu(made, 1);
    for (int threads : {2, 4}) {
      EXPECT_EQ(RunOnCpu(made, threads).bytes(), alone.bytes()) << threads << " threads, padding " << padding;
    }
  }
}

TEST(AffineDotKernel, RefusesOtherOps) {
  const Attributes attrs(Def(CoreOp::kAbs).attrs);
  const ConcreteType type = {DType::kF32, {2}};
  EXPECT_FALSE(
      MakeAffineDotKernel({.op = &Def(CoreOp::kAbs), .attrs = &attrs, .operands = {type}, .results = {type}}).ok());
}

}  // namespace
}  // namespace tensord::cpu
