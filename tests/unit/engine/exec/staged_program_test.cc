#include "engine/exec/staged_program.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "engine/runtime/compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/compiled_run.h"
#include "tests/testlib/hidden_memory_backend.h"
#include "tests/testlib/parsed_graph.h"
#include "tests/testlib/random_literal.h"

namespace tensord {
namespace {

using testing::HasSubstr;

// A sum of what is left, its mean taken with a reshape to a size that two cuts decide, and values that outlive stages.
constexpr absl::string_view kTwoCuts = R"(graph "g" {
  %x = input : i64[n,m]
  %k = input : i64[]
  %one = constant() {value = i64[] [1]}
  %rows = dynamic_truncate(%x, %k) {dimension = 0}
  %sum = reduce(%rows) {kind = sum, dimensions = [0, 1]}
  %columns = dynamic_truncate(%rows, %sum) {dimension = 1}
  %flat = reshape(%columns) {shape = [dim(0,0)*dim(0,1)]}
  %ones = broadcast_in_dim(%one, %flat) {shape = [dim(1,0)]}
  %more = add(%flat, %ones)
  %all = negate(%x)
  output "flat" = %more
  output "sum" = %sum
  output "all" = %all
  output "again" = %sum
  output "x" = %x
  output "one" = %one
})";

ExecProgram LowerText(absl::string_view text) {
  Graph graph = ParsedGraph(text);
  const auto guards = InferTypes(&graph);
  EXPECT_TRUE(guards.ok()) << guards.status();
  return LowerToProgram(graph);
}

TEST(ProgramStagesTest, AStageEndsWhereTheHostMustReadASize) {
  const std::vector<ProgramStage> stages = SplitIntoStages(LowerText(kTwoCuts));
  ASSERT_EQ(stages.size(), 2u);
  // The size of the first cut is an argument: known before anything runs.
  ASSERT_EQ(stages[0].sizes.size(), 1u);
  EXPECT_EQ(stages[0].sizes[0].symbol, "?rows");
  EXPECT_EQ(stages[0].program.instructions.size(), 3u);  // rows, sum, all
  ASSERT_EQ(stages[1].sizes.size(), 1u);
  EXPECT_EQ(stages[1].sizes[0].symbol, "?columns");
  EXPECT_EQ(stages[1].program.instructions.size(), 4u);
  EXPECT_EQ(stages[1].inputs.size(), 1u);  // rows; the sum goes to the host
}

TEST(ProgramStagesTest, AProgramWithoutCutsIsOneStage) {
  const ExecProgram program = LowerText(R"(graph "g" {
    %x = input : f32[n]
    %y = exp(%x)
    output "y" = %y
  })");
  EXPECT_FALSE(HasRunTimeSizes(program));
  EXPECT_EQ(SplitIntoStages(program).size(), 1u);
}

class StagedRunTest : public testing::TestWithParam<bool> {};

TEST_P(StagedRunTest, OneProgramServesEverySizeAsTheReferenceDoes) {
  HiddenMemoryBackend backend;
  absl::StatusOr<CompiledProgramPtr> program =
      Compile(ParsedGraph(kTwoCuts), {.device = "test:0", .row_major = GetParam()}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->segment_count(), GetParam() ? 7 : 6);  // a reshape is one only where it moves elements
  Graph typed = ParsedGraph(kTwoCuts);
  const auto guards = InferTypes(&typed);
  ASSERT_TRUE(guards.ok()) << guards.status();
  std::mt19937_64 random(5);
  for (int64_t n = 0; n < 6; ++n) {
    for (int64_t m = 0; m < 5; ++m) {
      for (int64_t k : {int64_t{-4}, int64_t{0}, int64_t{1}, int64_t{3}, int64_t{9}}) {
        const std::vector<Literal> arguments = {RandomLiteral({DType::kI64, {n, m}}, Values::kIntegers, &random),
                                                Literal::Scalar(k)};
        const auto want = EvaluateReference(typed, *guards, arguments);
        ASSERT_TRUE(want.ok()) << want.status();
        const auto got = RunCompiled(**program, arguments);
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ(got->size(), want->size());
        for (size_t i = 0; i < want->size(); ++i) {
          EXPECT_TRUE((*got)[i] == (*want)[i]) << "n " << n << " m " << m << " k " << k << " output " << i;
        }
      }
    }
  }
  *program = nullptr;  // bindings hold their constants
  EXPECT_EQ(backend.live_buffers(), 0);
}

INSTANTIATE_TEST_SUITE_P(Orders, StagedRunTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "row_major" : "column_major"; });

TEST(StagedProgramTest, AGuardOnADecidedSizeNamesItAndBothSizes) {
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : i64[n]
    %z = input : i64[3]
    %k = input : i32[]
    %y = dynamic_truncate(%x, %k) {dimension = 0}
    %sum = add(%y, %z)
    output "sum" = %sum
  })";
  HiddenMemoryBackend backend;
  const std::vector<Literal> arguments = {*Literal::Create({DType::kI64, {5}}), *Literal::Create({DType::kI64, {3}}),
                                          Literal::Scalar(int32_t{2})};
  const auto got = CompileAndRun(ParsedGraph(kText), {.backend = &backend}, arguments);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(DetailOf(got.status())->reason, "SHAPE_MISMATCH");
  EXPECT_EQ(DetailOf(got.status())->node, "sum");
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("?y = 2 and 3"));
  Graph typed = ParsedGraph(kText);
  const auto guards = InferTypes(&typed);
  EXPECT_EQ(EvaluateReference(typed, *guards, arguments).status().message(), got.status().message());
  EXPECT_EQ(backend.live_buffers(), 0);
}

TEST(StagedProgramTest, WhatNoOutputNeedsIsNotChecked) {
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : i64[4]
    %k = input : i32[]
    %y = dynamic_truncate(%x, %k) {dimension = 0}
    %dead = add(%y, %x)
    output "y" = %y
  })";
  for (const std::vector<std::string>& disabled :
       {std::vector<std::string>{}, std::vector<std::string>{"eliminate_dead_code"}}) {
    HiddenMemoryBackend backend;
    const auto got = CompileAndRun(ParsedGraph(kText), {.backend = &backend, .disabled_passes = disabled},
                                   {*Literal::Create({DType::kI64, {4}}), Literal::Scalar(int32_t{2})});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ((*got)[0].shape(), (Shape{2}));
  }
}

TEST(StagedProgramTest, TheLastStageThatReadsAValueMayWriteOverItButNotOverTheCallers) {
  // In the second stage %z may take the memory of %a, while %r is the argument itself.
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : i64[4,100]
    %a = negate(%x)
    %r = reshape(%x) {shape = [400]}
    %s = reduce(%a) {kind = max, dimensions = [0, 1]}
    %y = dynamic_truncate(%a, %s) {dimension = 1}
    %t = reduce(%y) {kind = sum, dimensions = [0, 1]}
    %ts = broadcast_in_dim(%t) {shape = [4, 100], broadcast_dimensions = []}
    %z = add(%a, %ts)
    %tr = broadcast_in_dim(%t) {shape = [400], broadcast_dimensions = []}
    %w = add(%r, %tr)
    output "z" = %z
    output "w" = %w
  })";
  HiddenMemoryBackend backend;
  Graph typed = ParsedGraph(kText);
  const auto guards = InferTypes(&typed);
  ASSERT_TRUE(guards.ok()) << guards.status();
  std::mt19937_64 random(1);
  const std::vector<Literal> arguments = {RandomLiteral({DType::kI64, {4, 100}}, Values::kIntegers, &random)};
  const auto want = EvaluateReference(typed, *guards, arguments);
  ASSERT_TRUE(want.ok()) << want.status();
  int64_t peak_without_reuse = 0;
  for (const std::vector<std::string>& disabled :
       {std::vector<std::string>{"mark_last_uses"}, std::vector<std::string>{}}) {
    const auto program =
        Compile(ParsedGraph(kText), {.device = "test:0", .disabled_passes = disabled}, Fingerprint(), &backend);
    ASSERT_TRUE(program.ok()) << program.status();
    for (bool donate : {false, true}) {
      const auto held = std::make_shared<const Literal>(arguments[0]);
      const BufferPtr x = *backend.Import(held->bytes().data(), arguments[0].type().num_bytes(), held);
      const absl::InlinedVector<bool, 1> donated = {donate};
      const auto got = (*program)->Run({arguments[0].type()}, {x}, nullptr, nullptr, donated);
      ASSERT_TRUE(got.ok()) << got.status();
      for (size_t i = 0; i < 2; ++i) {
        const auto bytes = *backend.Export(got->buffers[i]);
        EXPECT_EQ(std::memcmp(bytes.get(), (*want)[i].bytes().data(), (*want)[i].bytes().size()), 0) << i;
      }
      if (!donate) {
        EXPECT_EQ(std::memcmp((*backend.Export(x)).get(), arguments[0].bytes().data(), arguments[0].bytes().size()), 0);
      }
      if (!disabled.empty()) peak_without_reuse = got->peak_bytes;
      EXPECT_LE(got->peak_bytes, peak_without_reuse - (disabled.empty() ? 3200 : 0));
    }
  }
}

TEST(StagedProgramTest, ACheckThatRefusesEndsTheRun) {
  HiddenMemoryBackend backend;
  const absl::StatusOr<CompiledProgramPtr> program =
      Compile(ParsedGraph(kTwoCuts), {.device = "test:0"}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<BufferPtr> buffers;
  const std::vector<ConcreteType> types = {{DType::kI64, {2, 2}}, {DType::kI64, {}}};
  for (const ConcreteType& type : types) buffers.push_back(*backend.Allocate(type.num_bytes()));
  const auto got =
      (*program)->Run(types, buffers, [] { return Refuse(Refusal::kCancelled, "the client cancelled the run"); });
  EXPECT_EQ(got.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tensord
