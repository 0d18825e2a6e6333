#include "engine/runtime/compile/tiny_program.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/exec/binding/bound_program.h"
#include "engine/passes/pipeline.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord {
namespace {

// Lowers as for a device that fuses.
ExecProgram Lowered(absl::string_view text) {
  Graph graph = TypedGraph(text);
  const std::vector<GraphInput> inputs = graph.inputs();
  EXPECT_TRUE(RunPipeline(&graph, {.fuses = true}).ok());
  ExecProgram program = LowerToProgram(graph);
  program.inputs = inputs;
  return program;
}

bool IsFusedWhole(const ExecProgram& program) {
  return program.instructions.size() == 1 && program.instructions[0].body != nullptr;
}

bool IsTinyFor(const ExecProgram& program, const std::vector<ConcreteType>& arguments) {
  EXPECT_TRUE(MayBeTiny(program));
  const absl::StatusOr<SizeBinding> sizes = BindSizes(program, arguments);
  EXPECT_TRUE(sizes.ok()) << sizes.status();
  return sizes.ok() && IsTiny(program, *sizes);
}

ConcreteType F32(const std::vector<int64_t>& shape) {
  return {.dtype = DType::kF32, .shape = {shape.begin(), shape.end()}};
}

TEST(TinyProgramTest, FusedOrNotAFewOpsOnSomeKilobytesAre) {
  for (const int64_t n : {2, 1000, 4000}) {
    const ExecProgram program = Lowered(absl::StrCat(R"(graph "g" { %x = input : f32[)", n, R"(]
      %d = add(%x, %x)
      %t = tanh(%d)
      output "y" = %t })"));
    EXPECT_TRUE(IsFusedWhole(program));
    EXPECT_EQ(IsTinyFor(program, {F32({n})}), n < 4000) << n;
  }
}

TEST(TinyProgramTest, TheSizesOfTheArgumentsDecide) {
  const ExecProgram program = Lowered(R"(graph "g" { %x = input : f32[n]
    %d = add(%x, %x)
    %t = tanh(%d)
    output "y" = %t })");
  EXPECT_TRUE(IsTinyFor(program, {F32({2})}));
  EXPECT_FALSE(IsTinyFor(program, {F32({4000})}));
  EXPECT_TRUE(IsTinyFor(program, {F32({0})}));
}

// No value in memory is large.
TEST(TinyProgramTest, WhatIsComputedOnTheWayCounts) {
  const ExecProgram program = Lowered(R"(graph "g" { %x = input : f32[16]
    %w = broadcast_in_dim(%x) {shape = [16, 1000000], broadcast_dimensions = [0]}
    %t = tanh(%w)
    %s = reduce(%t) {kind = sum, dimensions = [1]}
    output "y" = %s })");
  EXPECT_TRUE(IsFusedWhole(program));
  EXPECT_FALSE(IsTinyFor(program, {F32({16})}));
}

TEST(TinyProgramTest, ProductsAreJudgedByTheirMultiplications) {
  const auto product = [](int64_t n, absl::string_view dtype) {
    return Lowered(absl::StrCat(R"(graph "g" { %x = input : )", dtype, "[", n, ",", n, R"(]
      %p = dot_general(%x, %x) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
      output "y" = %p })"));
  };
  EXPECT_TRUE(IsTinyFor(product(32, "f32"), {F32({32, 32})}));
  const std::vector<ConcreteType> halves = {{.dtype = DType::kF16, .shape = {80, 80}}};
  EXPECT_FALSE(IsTinyFor(product(80, "f16"), halves)) << "half a million of them on 25 kilobytes";
}

TEST(TinyProgramTest, ManyOpsAreNot) {
  std::string text = R"(graph "g" { %v0 = input : f32[2,2])";
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&text, "\n%v", i + 1, " = dot_general(%v", i, ", %v", i,
                    ") {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}");
  }
  EXPECT_FALSE(MayBeTiny(Lowered(absl::StrCat(text, "\noutput \"y\" = %v20 }"))));
}

}  // namespace
}  // namespace tensord
