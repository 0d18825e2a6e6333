// Products of any axes by cublasLt.
#include "backends/cuda/kernels/dot_kernel.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/kernels/dot_plan.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

constexpr DType kDotDTypes[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128, DType::kF16, DType::kBF16};

std::string AxesText(absl::Span<const int64_t> axes) { return absl::StrCat("[", absl::StrJoin(axes, ", "), "]"); }

struct DotCase {
  Shape lhs, rhs;
  std::vector<int64_t> lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;

  std::string Text(DType dtype, absl::string_view more = "") const {
    return absl::StrCat("graph \"g\" {\n  %x = input : ", ToString(ConcreteType{dtype, lhs}),
                        "\n  %y = input : ", ToString(ConcreteType{dtype, rhs}),
                        "\n  %z = dot_general(%x, %y) {lhs_contracting_dimensions = ", AxesText(lhs_contracting),
                        ", rhs_contracting_dimensions = ", AxesText(rhs_contracting),
                        ", lhs_batching_dimensions = ", AxesText(lhs_batch),
                        ", rhs_batching_dimensions = ", AxesText(rhs_batch), more, "}\n  output \"z\" = %z\n}");
  }
};

// Axes of up to two of each role, in any order.
DotCase RandomCase(std::mt19937_64* random) {
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(*random);
  };
  struct Axis {
    int64_t size;
    int role;  // 0: free, 1: summed, 2: batch
    size_t pair;
  };
  std::vector<Axis> lhs, rhs;
  DotCase drawn;
  for (const int role : {1, 2}) {
    const auto pairs = static_cast<size_t>(draw(0, 2));
    for (size_t pair = 0; pair < pairs; ++pair) {
      const int64_t size = draw(1, 4);
      lhs.push_back({size, role, pair});
      rhs.push_back({size, role, pair});
    }
    (role == 1 ? drawn.lhs_contracting : drawn.lhs_batch).resize(pairs);
    (role == 1 ? drawn.rhs_contracting : drawn.rhs_batch).resize(pairs);
  }
  for (std::vector<Axis>* side : {&lhs, &rhs}) {
    for (int64_t i = draw(0, 2); i > 0; --i) side->push_back({draw(1, 5), 0, 0});
    std::shuffle(side->begin(), side->end(), *random);
  }
  for (size_t i = 0; i < lhs.size(); ++i) {
    drawn.lhs.push_back(lhs[i].size);
    if (lhs[i].role != 0) (lhs[i].role == 1 ? drawn.lhs_contracting : drawn.lhs_batch)[lhs[i].pair] = int64_t(i);
  }
  for (size_t i = 0; i < rhs.size(); ++i) {
    drawn.rhs.push_back(rhs[i].size);
    if (rhs[i].role != 0) (rhs[i].role == 1 ? drawn.rhs_contracting : drawn.rhs_batch)[rhs[i].pair] = int64_t(i);
  }
  return drawn;
}

const DotCase kMatrices = {{7, 5}, {5, 6}, {1}, {0}, {}, {}};

class CudaDotTest : public BesideCpuTest {
 protected:
  std::vector<Literal> Arguments(const DotCase& dot, DType dtype, Values values) {
    return {RandomLiteral({dtype, dot.lhs}, values, &random_), RandomLiteral({dtype, dot.rhs}, values, &random_)};
  }
  static Tolerance ToleranceOf(DType dtype) {
    const double u = dtype == DType::kF16             ? 1e-3
                     : dtype == DType::kBF16          ? 8e-3
                     : SizeOf(RealPartOf(dtype)) == 4 ? 1e-6
                                                      : 1e-14;
    return {.norm_relative = 4 * u, .least_norm = 16};
  }
};

TEST_F(CudaDotTest, MatricesOfEachDtype) {
  hostCudaSet("DELAY_US", "200");
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : kDotDTypes) {
    ExpectAsOnCpu(backend.get(), kMatrices.Text(dtype), Arguments(kMatrices, dtype, Values::kModest),
                  ToleranceOf(dtype));
    ExpectAsOnCpu(backend.get(), kMatrices.Text(dtype), Arguments(kMatrices, dtype, Values::kIntegers), {});
  }
}

TEST_F(CudaDotTest, AxesInAnyOrder) {
  const std::unique_ptr<Backend> backend = Made();
  for (int i = 0; i < 36; ++i) {
    const DotCase dot = RandomCase(&random_);
    const DType dtype = kDotDTypes[static_cast<size_t>(i) % std::size(kDotDTypes)];
    ExpectAsOnCpu(backend.get(), dot.Text(dtype), Arguments(dot, dtype, Values::kIntegers), {});
  }
}

TEST_F(CudaDotTest, ResultsInAnyOrder) {
  const std::unique_ptr<Backend> backend = Made();
  const std::string text = R"(graph "g" {
    %x = input : f64[2,3,4]
    %y = input : f64[4,5,2]
    %z = dot_general(%x, %y) {lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0], lhs_batching_dimensions = [0], rhs_batching_dimensions = [2]}
    %t = transpose(%z) {permutation = PERMUTATION}
    output "t" = %t
  })";
  std::vector<int64_t> permutation = {0, 1, 2};
  do {
    std::string permuted = text;
    permuted.replace(permuted.find("PERMUTATION"), 11, AxesText(permutation));
    const auto run = Run(backend.get(), permuted,
                         {RandomLiteral({DType::kF64, {2, 3, 4}}, Values::kIntegers, &random_),
                          RandomLiteral({DType::kF64, {4, 5, 2}}, Values::kIntegers, &random_)});
    // A transpose that the product takes in; where it does not, the layout kernels run it.
    if (!run.ok() && ReasonOf(run.status()) == "UNSUPPORTED_ON_DEVICE") continue;
    ExpectAsOnCpu(backend.get(), permuted,
                  {RandomLiteral({DType::kF64, {2, 3, 4}}, Values::kIntegers, &random_),
                   RandomLiteral({DType::kF64, {4, 5, 2}}, Values::kIntegers, &random_)},
                  {});
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST_F(CudaDotTest, ConjugatesOfEitherSide) {
  const std::unique_ptr<Backend> backend = Made();
  for (const absl::string_view sides : {"%a, %y", "%x, %b", "%a, %b"}) {
    for (const absl::string_view axes : {"lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]",
                                         "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]"}) {
      const std::string text = absl::StrCat(R"(graph "g" {
        %x = input : c128[4,4]
        %y = input : c128[4,4]
        %a = conj(%x)
        %b = conj(%y)
        %z = dot_general()",
                                            sides, ") {", axes, "}\n output \"z\" = %z\n}");
      ExpectAsOnCpu(backend.get(), text,
                    {RandomLiteral({DType::kC128, {4, 4}}, Values::kIntegers, &random_),
                     RandomLiteral({DType::kC128, {4, 4}}, Values::kIntegers, &random_)},
                    {});
    }
  }
}

TEST_F(CudaDotTest, WiderResults) {
  const std::unique_ptr<Backend> backend = Made();
  const std::pair<DType, absl::string_view> kWider[] = {{DType::kF16, "f32"}, {DType::kBF16, "f32"},
                                                        {DType::kF16, "f64"}, {DType::kBF16, "f64"},
                                                        {DType::kF32, "f64"}, {DType::kC64, "c128"}};
  for (const auto& [dtype, result] : kWider) {
    ExpectAsOnCpu(backend.get(), kMatrices.Text(dtype, absl::StrCat(", result_dtype = ", result)),
                  Arguments(kMatrices, dtype, Values::kModest), {.norm_relative = 1e-6, .least_norm = 4});
    ExpectAsOnCpu(backend.get(), kMatrices.Text(dtype, absl::StrCat(", result_dtype = ", result)),
                  Arguments(kMatrices, dtype, Values::kIntegers), {});
  }
}

TEST_F(CudaDotTest, SizesOfNothingAndOne) {
  const std::unique_ptr<Backend> backend = Made();
  const DotCase kCases[] = {{{0, 5}, {5, 6}, {1}, {0}, {}, {}},
                            {{7, 0}, {0, 6}, {1}, {0}, {}, {}},
                            {{7, 0, 2}, {0, 6, 2}, {1}, {0}, {2}, {2}},
                            {{7, 5, 0}, {5, 6, 0}, {1}, {0}, {2}, {2}},
                            {{1, 1}, {1, 1}, {1}, {0}, {}, {}},
                            {{}, {}, {}, {}, {}, {}},
                            {{9}, {9}, {0}, {0}, {}, {}},
                            {{1, 9}, {9}, {1}, {0}, {}, {}},
                            {{3}, {4}, {}, {}, {}, {}},
                            {{6}, {6}, {}, {}, {0}, {0}}};
  for (const DotCase& dot : kCases) {
    ExpectAsOnCpu(backend.get(), dot.Text(DType::kF32), Arguments(dot, DType::kF32, Values::kIntegers), {});
  }
}

TEST_F(CudaDotTest, NumbersThatAreNotFinite) {
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    std::vector<Literal> arguments = Arguments(kMatrices, dtype, Values::kIntegers);
    VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
      if constexpr (RealElement<T>) {
        arguments[0].mutable_values<T>()[3] = std::numeric_limits<T>::quiet_NaN();
        arguments[1].mutable_values<T>()[12] = std::numeric_limits<T>::infinity();
      }
    });
    ExpectAsOnCpu(backend.get(), kMatrices.Text(dtype), arguments, {});
  }
}

TEST_F(CudaDotTest, EachCallMayFail) {
  // Both operands are copied first.
  const DotCase dot = {{3, 4, 2}, {5, 3, 2}, {0, 2}, {1, 2}, {}, {}};
  ExpectFailuresLeaveNothing(
      {"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
       "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic",
       "cublasLtMatmul"},
      dot.Text(DType::kF64), Arguments(dot, DType::kF64, Values::kIntegers));
  ExpectFailuresLeaveNothing({"cuMemsetD8Async"}, DotCase{{7, 0}, {0, 6}, {1}, {0}, {}, {}}.Text(DType::kF64),
                             Arguments({{7, 0}, {0, 6}, {1}, {0}, {}, {}}, DType::kF64, Values::kIntegers));
}

// Own kernels take its place.
TEST_F(CudaDotTest, WhatTheLibraryHasNoAlgorithmFor) {
  for (const DType dtype : {DType::kF16, DType::kF32, DType::kC128}) {
    for (const BlasResult refusal : {kBlasNotSupported, kBlasArchitectureMismatch}) {
      for (const long call : {1, 2}) {
        const std::unique_ptr<Backend> backend = Made();
        hostCudaFail("cublasLtMatmulAlgoGetHeuristic", call, refusal);
        ExpectAsOnCpu(backend.get(), kMatrices.Text(dtype), Arguments(kMatrices, dtype, Values::kIntegers), {});
        hostCudaFail("", 0, 0);
      }
    }
  }
}

TEST_F(CudaDotTest, MoreMatricesThanACallTakes) {
  const std::unique_ptr<Backend> backend = Made();
  for (const int64_t batch : {65536, 2 * 65535 + 2}) {
    const DotCase dot = {{33, batch}, {33, batch}, {0}, {0}, {1}, {1}};
    ExpectAsOnCpu(backend.get(), dot.Text(DType::kF32), Arguments(dot, DType::kF32, Values::kIntegers), {});
  }
}

TEST_F(CudaDotTest, SameBitsAgain) {
  const std::unique_ptr<Backend> backend = Made();
  const std::vector<Literal> arguments = Arguments(kMatrices, DType::kF32, Values::kModest);
  const auto first = Run(backend.get(), kMatrices.Text(DType::kF32), arguments);
  const auto again = Run(backend.get(), kMatrices.Text(DType::kF32), arguments);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_TRUE(*first == *again);
}

// Of what a row-major client writes as x W + b: the bias lies along the first axis.
std::string BiasedText(absl::string_view dtype, absl::string_view more = "") {
  return absl::StrCat("graph \"g\" {\n  %w = input : ", dtype, "[7,5]\n  %x = input : ", dtype,
                      "[5,3,6]\n  %b = input : ", dtype,
                      "[7]\n  %z = dot_general(%w, %x) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = "
                      "[0]}\n  %r = broadcast_in_dim(%b) {shape = [7, 3, 6], broadcast_dimensions = [0]}\n  %y = "
                      "add(%z, %r)\n  output \"y\" = %y\n",
                      more, "}");
}

// Nothing stops a call of the library, so that none may be long: matrices of a batch are in several, and columns of
// one.
TEST_F(CudaDotTest, LongProductsAreSeveralCalls) {
  most_call_products_ = 1;  // a call has as little as it may
  const std::unique_ptr<Backend> backend = Made();
  const std::pair<DotCase, long> kCases[] = {
      {{{40, 70}, {70, 50}, {1}, {0}, {}, {}}, 4},  // 16 of 50 columns
      {{{40, 70}, {50, 70}, {1}, {1}, {}, {}}, 4},  // the right side is transposed
      {{{40, 70}, {70, 48}, {1}, {0}, {}, {}}, 3},  // no call has fewer
      {{{40, 70}, {70, 5}, {1}, {0}, {}, {}}, 1},   // of so few columns
      {{{40, 70, 3}, {70, 50, 3}, {1}, {0}, {2}, {2}}, 12}, {{{3, 40, 70}, {50, 3, 70}, {2}, {2}, {0}, {1}}, 12},
      {{{70, 40}, {70, 2, 25}, {0}, {0}, {}, {}}, 4},
  };
  for (const auto& [dot, calls] : kCases) {
    for (const DType dtype : kDotDTypes) {
      const long before = hostCudaCalls("cublasLtMatmul");
      ExpectAsOnCpu(backend.get(), dot.Text(dtype), Arguments(dot, dtype, Values::kIntegers), {});
      EXPECT_EQ(hostCudaCalls("cublasLtMatmul") - before, calls) << dot.Text(dtype);
    }
  }
  ExpectAsOnCpu(backend.get(), BiasedText("f32"),
                {RandomLiteral({DType::kF32, {7, 5}}, Values::kModest, &random_),
                 RandomLiteral({DType::kF32, {5, 3, 6}}, Values::kModest, &random_),
                 RandomLiteral({DType::kF32, {7}}, Values::kModest, &random_)},
                ToleranceOf(DType::kF32));
}

// Matrices that are short together are in one call.
TEST_F(CudaDotTest, ACallTakesAsManyMatricesAsItMay) {
  const DotCase dot = {{40, 70, 9}, {70, 50, 9}, {1}, {0}, {2}, {2}};
  hostCudaSet("MULTIPROCESSORS", "100");
  most_call_products_ = 40 * 70 * 50 * 4 / 100;
  const long before = hostCudaCalls("cublasLtMatmul");
  ExpectAsOnCpu(Made().get(), dot.Text(DType::kF32), Arguments(dot, DType::kF32, Values::kIntegers), {});
  EXPECT_EQ(hostCudaCalls("cublasLtMatmul") - before, 3);
  hostCudaSet("MULTIPROCESSORS", "");
}

TEST_F(CudaDotTest, AProductAddsItsBias) {
  const std::unique_ptr<Backend> backend = Made();
  const std::pair<absl::string_view, long> kKernels[] = {{"f32", 0}, {"f64", 1}, {"bf16", 1}, {"f16", 1}, {"c64", 1}};
  for (const auto& [dtype, kernels] : kKernels) {
    const DType type = *DTypeFromName(dtype);
    const std::vector<Literal> arguments = {RandomLiteral({type, {7, 5}}, Values::kModest, &random_),
                                            RandomLiteral({type, {5, 3, 6}}, Values::kModest, &random_),
                                            RandomLiteral({type, {7}}, Values::kModest, &random_)};
    const long before = hostCudaCalls("cuLaunchKernel"), products = hostCudaCalls("cublasLtMatmul");
    ExpectAsOnCpu(backend.get(), BiasedText(dtype), arguments, ToleranceOf(type));
    EXPECT_EQ(hostCudaCalls("cuLaunchKernel") - before, kernels) << dtype;
    EXPECT_EQ(hostCudaCalls("cublasLtMatmul") - products, 1) << dtype;
    // The bits are those of a sum after the product.
    const auto one = Run(backend.get(), BiasedText(dtype), arguments);
    const auto two = Run(backend.get(), BiasedText(dtype, "  output \"z\" = %z\n"), arguments);
    ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
    EXPECT_TRUE((*one)[0] == (*two)[0]) << dtype;
  }
}

TEST_F(CudaDotTest, SumsThatAreNoBias) {
  const std::unique_ptr<Backend> backend = Made();
  const auto text = [](absl::string_view z, absl::string_view sum) {
    return absl::StrCat(
        "graph \"g\" {\n  %w = input : f32[7,5]\n  %x = input : f32[5,6]\n  %b = input : f32[7]\n"
        "  %c = input : f32[6]\n  %d = input : f32[7,6]\n  %z = dot_general(",
        z, "\n", sum, "  output \"y\" = %y\n}");
  };
  const auto of = [&](Shape shape) {
    return RandomLiteral({DType::kF32, std::move(shape)}, Values::kModest, &random_);
  };
  const std::vector<Literal> arguments = {of({7, 5}), of({5, 6}), of({7}), of({6}), of({7, 6})};
  constexpr absl::string_view kPlain = "%w, %x) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}";
  constexpr absl::string_view kTurned = "%x, %w) {lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]}";
  constexpr absl::string_view kRows = "broadcast_in_dim(%b) {shape = [7, 6], broadcast_dimensions = [0]}\n";
  const std::pair<std::string, long> kSums[] = {
      {absl::StrCat("  %r = ", kRows, "  %y = add(%r, %z)\n"), 0},
      {absl::StrCat("  %r = ", kRows, "  %y = subtract(%z, %r)\n"), 1},
      {absl::StrCat("  %r = ", kRows, "  %s = add(%z, %r)\n  %y = tanh(%s)\n"), 1},
      {absl::StrCat("  %r = ", kRows, "  %s = add(%z, %r)\n  %y = add(%s, %d)\n"), 1},
      {"  %r = broadcast_in_dim(%c) {shape = [7, 6], broadcast_dimensions = [1]}\n  %y = add(%z, %r)\n", 1},
      {"  %y = add(%z, %d)\n", 1},
      {"  %y = add(%z, %z)\n", 1},
      // The product has more elements than the sum.
      {"  %s = slice(%z) {start_indices = [0, 0], limit_indices = [7, 4], strides = [1, 1]}\n  %r = "
       "broadcast_in_dim(%b) {shape = [7, 4], broadcast_dimensions = [0]}\n  %y = add(%s, %r)\n",
       1}};
  for (const auto& [sum, kernels] : kSums) {
    const long before = hostCudaCalls("cuLaunchKernel");
    ExpectAsOnCpu(backend.get(), text(kPlain, sum), arguments, ToleranceOf(DType::kF32));
    EXPECT_EQ(hostCudaCalls("cuLaunchKernel") - before, kernels) << sum;
  }
  // The result's first axis is the right operand's: rows and columns are the other way round.
  ExpectAsOnCpu(backend.get(),
                text(kTurned,
                     "  %r = broadcast_in_dim(%c) {shape = [6, 7], broadcast_dimensions = [0]}\n  %y = "
                     "add(%z, %r)\n"),
                arguments, ToleranceOf(DType::kF32));
}

// Memory of the operands is not the result's yet, and a bias may lie anywhere.
TEST_F(CudaDotTest, BiasesInALongerProgram) {
  const std::unique_ptr<Backend> backend = Made();
  std::string text = "graph \"g\" {\n  %h0 = input : f32[48,40]\n  %v = input : f32[97]\n";
  for (int i = 0; i < 4; ++i) absl::StrAppend(&text, "  %w", i, " = input : f32[48,48]\n");
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&text, "  %s", i, " = slice(%v) {start_indices = [", 7 * i, "], limit_indices = [", 7 * i + 48,
                    "], strides = [1]}\n  %r", i, " = broadcast_in_dim(%s", i,
                    ") {shape = [48, 40], broadcast_dimensions = [0]}\n  %z", i, " = dot_general(%w", i, ", %h", i,
                    ") {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}\n  %h", i + 1, " = add(%z",
                    i, ", %r", i, ")\n");
  }
  absl::StrAppend(&text, "  output \"y\" = %h4\n}");
  std::vector<Literal> arguments = {RandomLiteral({DType::kF32, {48, 40}}, Values::kModest, &random_),
                                    RandomLiteral({DType::kF32, {97}}, Values::kModest, &random_)};
  for (int i = 0; i < 4; ++i) {
    arguments.push_back(RandomLiteral({DType::kF32, {48, 48}}, Values::kModest, &random_));
  }
  hostCudaSet("DELAY_US", "200");
  const long before = hostCudaCalls("cublasLtMatmul");
  ExpectAsOnCpu(backend.get(), text, arguments, {.norm_relative = 1e-5, .least_norm = 16});
  EXPECT_EQ(hostCudaCalls("cublasLtMatmul") - before, 4);
}

TEST_F(CudaDotTest, EachCallOfABiasedProductMayFail) {
  const std::vector<Literal> arguments = {RandomLiteral({DType::kF32, {7, 5}}, Values::kIntegers, &random_),
                                          RandomLiteral({DType::kF32, {5, 3, 6}}, Values::kIntegers, &random_),
                                          RandomLiteral({DType::kF32, {7}}, Values::kIntegers, &random_)};
  ExpectFailuresLeaveNothing({"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
                              "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"},
                             BiasedText("f32"), arguments);
  // Where it has no algorithm with a bias, there is a product and a sum.
  for (const long call : {1, 2}) {
    const std::unique_ptr<Backend> backend = Made();
    hostCudaFail("cublasLtMatmulAlgoGetHeuristic", call, kBlasNotSupported);
    const long before = hostCudaCalls("cuLaunchKernel");
    ExpectAsOnCpu(backend.get(), BiasedText("f32"), arguments, {});
    hostCudaFail("", 0, 0);
    EXPECT_EQ(hostCudaCalls("cuLaunchKernel") - before, 1);
  }
}

DotPlan PlanOf(const DotCase& dot) {
  const DotAxes axes = {dot.lhs_contracting, dot.rhs_contracting, dot.lhs_batch, dot.rhs_batch, false, false, {}};
  return PlanDot(ClassifyAxes(dot.lhs, dot.rhs, axes), {DType::kF32, DType::kF32, DType::kF32}, false, false);
}

TEST(DotPlanTest, AxesThatFollowEachOtherAreNotCopied) {
  const DotCase kInPlace[] = {{{7, 5}, {5, 6}, {1}, {0}, {}, {}},
                              {{5, 7}, {5, 6}, {0}, {0}, {}, {}},
                              {{7, 5}, {6, 5}, {1}, {1}, {}, {}},
                              {{2, 3, 5}, {5, 6, 4}, {2}, {0}, {}, {}},
                              {{2, 3, 5, 4}, {2, 3, 6, 4}, {0, 1}, {0, 1}, {3}, {3}},
                              // Pairs of summed axes in the other order.
                              {{2, 3, 5}, {2, 3, 6}, {1, 0}, {1, 0}, {}, {}}};
  for (const DotCase& dot : kInPlace) {
    const DotPlan plan = PlanOf(dot);
    EXPECT_FALSE(plan.left.pack.has_value() || plan.right.pack.has_value() || plan.unpack.has_value())
        << dot.Text(DType::kF32);
  }
}

TEST(DotPlanTest, OnlyTheOperandIsCopiedWhoseAxesAreApart) {
  const DotPlan plan = PlanOf({{3, 4, 2}, {3, 2, 5}, {0, 2}, {0, 1}, {}, {}});
  EXPECT_EQ(plan.left.side, kLhs);
  EXPECT_TRUE(plan.left.pack.has_value());
  EXPECT_FALSE(plan.right.pack.has_value());
  EXPECT_EQ(plan.left.pack->num_elements(), 24);
}

TEST(DotPlanTest, TypesOfSums) {
  EXPECT_EQ(DotTypesOf(DType::kF16, DType::kF32)->factor, DType::kF16);
  EXPECT_EQ(DotTypesOf(DType::kF16, DType::kF64)->factor, DType::kF64);
  EXPECT_EQ(DotTypesOf(DType::kC64, DType::kC128)->factor, DType::kC128);
  EXPECT_FALSE(DotTypesOf(DType::kI32, DType::kI32).has_value());
}

}  // namespace
}  // namespace tensord::cuda
