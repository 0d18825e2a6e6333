#include "engine/exec/binding/staged_program.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/exec/binding/staged_run.h"
#include "engine/ir/graph_builder.h"
#include "engine/ir/op_registry.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/reference/evaluator.h"
#include "engine/runtime/compile/compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/reason_of.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/testlib/runs/hidden_memory_backend.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

using testing::HasSubstr;

// A sum of the rest, its mean taken with a reshape to a size that two cuts decide, and values that outlive stages.
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

// Checks that the run asks for the backend's memory before it uses it.
void ExpectPeakCovers(absl::string_view text, absl::Span<const ConcreteType> types, bool donate) {
  HiddenMemoryBackend backend;
  const auto program = Compile(ParsedGraph(text), {.device = "test:0"}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  std::mt19937_64 random(3);
  std::vector<BufferPtr> arguments;
  for (const ConcreteType& type : types) {
    const auto value = std::make_shared<const Literal>(RandomLiteral(type, Values::kIntegers, &random));
    arguments.push_back(*backend.Import(value->bytes().data(), type.num_bytes(), value));
  }
  const absl::InlinedVector<bool, 2> donated(types.size(), donate);
  std::vector<int64_t> asked;
  const MemoryRequest memory = [&](int64_t peak_bytes) {
    asked.push_back(peak_bytes);
    EXPECT_LE(backend.Memory().peak_in_use_bytes, peak_bytes) << "taken before it was asked for";
    return true;
  };
  const auto run = (*program)->staged()->Start(types, arguments, donated);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto got = (*run)->GoOn({.check = nullptr, .memory = memory});
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(got->has_value());
  EXPECT_GE((*got)->peak_bytes, backend.Memory().peak_in_use_bytes);
  ASSERT_FALSE(asked.empty());
  EXPECT_TRUE(std::is_sorted(asked.begin(), asked.end()));
  EXPECT_EQ(asked.back(), (*got)->peak_bytes);
}

TEST(StagedProgramTest, WhatARunHasIsWhatItAskedFor) {
  // The last stage reads a part of %a, and so keeps all of it; nobody reads %x, which the caller keeps.
  constexpr absl::string_view kPartOfALargeValue = R"(graph "g" {
    %x = input : i64[1000]
    %a = negate(%x)
    %b = slice(%a) {start_indices = [0], limit_indices = [10]}
    %s = reduce(%a) {kind = max, dimensions = [0]}
    %y = dynamic_truncate(%a, %s) {dimension = 0}
    %t = reduce(%y) {kind = max, dimensions = [0]}
    %w = dynamic_truncate(%b, %t) {dimension = 0}
    %u = reduce(%w) {kind = sum, dimensions = [0]}
    %big = broadcast_in_dim(%u) {shape = [5000], broadcast_dimensions = []}
    output "big" = %big
  })";
  for (bool donate : {false, true}) ExpectPeakCovers(kPartOfALargeValue, {{DType::kI64, {1000}}}, donate);
}

TEST(StagedProgramTest, AStageForWhichThereIsNoMemoryIsNotRun) {
  HiddenMemoryBackend backend;
  const auto program = Compile(ParsedGraph(kTwoCuts), {.device = "test:0"}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  const std::vector<ConcreteType> types = {{DType::kI64, {2, 2}}, {DType::kI64, {}}};
  std::vector<BufferPtr> buffers;
  for (const ConcreteType& type : types) buffers.push_back(*backend.Allocate(type.num_bytes()));
  const auto run = (*program)->staged()->Start(types, buffers, {});
  ASSERT_TRUE(run.ok()) << run.status();
  const MemoryRequest memory = [](int64_t) { return Refuse(Refusal::kOutOfMemory, "no room"); };
  EXPECT_EQ(ReasonOf((*run)->GoOn({.check = nullptr, .memory = memory}).status()), "OUT_OF_MEMORY");
}

TEST(StagedProgramTest, ARunStopsForAStageOrForMemoryAndGoesOnWithItsValues) {
  GatedBackend backend;
  backend.prepares_slowly = true;  // and so its preparations are counted
  const auto program = Compile(ParsedGraph(kTwoCuts), {.device = "test:0"}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  std::mt19937_64 random(2);
  const std::vector<Literal> values = {RandomLiteral({DType::kI64, {5, 4}}, Values::kIntegers, &random),
                                       Literal::Scalar(int64_t{3})};
  Graph typed = ParsedGraph(kTwoCuts);
  const auto guards = InferTypes(&typed);
  const auto want = EvaluateReference(typed, *guards, values);
  ASSERT_TRUE(want.ok()) << want.status();
  CompiledProgramPtr sized = *(*program)->ProgramFor({values[0].type(), values[1].type()}, nullptr);
  ASSERT_NE(sized->staged(), nullptr);

  int stages = 0, asked = 0;
  size_t prepared = 0;
  const MemoryRequest memory = [&asked](int64_t) { return ++asked % 2 == 0; };  // the second time
  std::vector<BufferPtr> arguments;
  for (const Literal& value : values) {
    arguments.push_back(*backend.Import(value.bytes().data(), value.type().num_bytes(), nullptr));
  }
  std::unique_ptr<StagedRun> run = *sized->staged()->Start({values[0].type(), values[1].type()}, arguments, {});
  std::optional<ProgramResults> results;
  while (!results.has_value()) {
    auto got = run->GoOn({.check = nullptr, .memory = memory, .binds_stages = false});
    ASSERT_TRUE(got.ok()) << got.status();
    results = *std::move(got);
    std::optional<WantedStage> wanted = run->TakeWanted();
    if (!wanted.has_value()) continue;
    ++stages;
    EXPECT_EQ(backend.prepared_on.size(), prepared) << "the run prepares nothing";
    auto bound = wanted->make();
    ASSERT_TRUE(bound.ok()) << bound.status();
    prepared = backend.prepared_on.size();
    run->Bring(*std::move(bound));
  }
  EXPECT_EQ(stages, 2);
  EXPECT_GE(asked, 2);
  EXPECT_EQ(backend.prepared_on.size(), prepared);
  ASSERT_EQ(results->buffers.size(), want->size());
  for (size_t i = 0; i < want->size(); ++i) {
    EXPECT_EQ(results->types[i], (*want)[i].type()) << i;
    const auto bytes = *backend.Export(results->buffers[i]);
    EXPECT_EQ(std::memcmp(bytes.get(), (*want)[i].bytes().data(), (*want)[i].bytes().size()), 0) << i;
  }
}

TEST(StagedProgramTest, ConstantsAreOnTheDeviceOnceForAllStagesAndSizes) {
  // The first two stages read %c, the host reads %k, and the caller gets %c itself.
  std::string text = "graph \"g\" {\n  %x = input : i64[1000]\n  %c = constant() {value = i64[1000] [";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", i);
  absl::StrAppend(&text, R"(]}
    %a = add(%x, %c)
    %s = reduce(%a) {kind = max, dimensions = [0]}
    %y = dynamic_truncate(%c, %s) {dimension = 0}
    %t = reduce(%y) {kind = sum, dimensions = [0]}
    %ts = broadcast_in_dim(%t) {shape = [1000], broadcast_dimensions = []}
    %z = add(%c, %ts)
    output "y" = %y
    output "z" = %z
    output "c" = %c
  })");
  constexpr int64_t kBytes = 8000;
  HiddenMemoryBackend backend;
  auto program = Compile(ParsedGraph(text), {.device = "test:0"}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  for (int64_t rows = 1; rows < 8; ++rows) {
    Literal x = *Literal::Create({DType::kI64, {1000}});
    for (int64_t& value : x.mutable_values<int64_t>()) value = rows - 1000;
    const auto got = RunCompiled(**program, {x});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ((*got)[0].shape(), (Shape{rows - 1}));
    EXPECT_EQ(backend.Memory().in_use_bytes, kBytes) << rows;
  }
  *program = nullptr;
  EXPECT_EQ(backend.live_buffers(), 0);
}

// A family of the test's, of one op that is expanded to two cuts: (x, rows, columns) -> the corner of x. The cut of the
// second axis is made first, other than the type rule names the sizes.
absl::StatusOr<ResultTypes> InferCorner(InferContext& context) {
  TensorType result = context.operand(0);
  for (Dim& dim : result.shape) dim = context.RunTimeSize(dim);
  return ResultTypes{std::move(result)};
}

absl::StatusOr<ExpandedResults> ExpandCorner(const ExpandCall& call) {
  ValueId value = call.operands[0];
  for (const int64_t axis : {1, 0}) {
    Attributes attrs(Def(CoreOp::kDynamicTruncate).attrs);
    attrs.Set("dimension", axis);
    ASSIGN_OR_RETURN(value, call.graph.Add(Def(CoreOp::kDynamicTruncate), std::move(attrs),
                                           {value, call.operands[static_cast<size_t>(axis) + 1]}));
  }
  ASSIGN_OR_RETURN(value, call.graph.Add(Def(CoreOp::kNegate), {value}));
  return ExpandedResults{value};
}

constexpr OpDef kCornerOps[] = {{.family = "example",
                                 .index = 0,
                                 .name = "example.v1.Corner",
                                 .summary = "Of a test.",
                                 .op_class = OpClass::kExtension,
                                 .min_operands = 3,
                                 .max_operands = 3,
                                 .attrs = {},
                                 .traits = kNoTraits,
                                 .dtypes = kAnyDType,
                                 .infer = &InferCorner,
                                 .refusals = RefusalTable::None("a test's"),
                                 .reference = Facet<ReferenceRule>::None("a test's"),
                                 .permute = Facet<PermuteRule>::None("a test's"),
                                 .jvp = Facet<JvpRule>::None("a test's"),
                                 .linear_transpose = Facet<TransposeRule>::None("a test's"),
                                 .expand = &ExpandCorner}};

absl::StatusOr<std::vector<Literal>> RunCorner(absl::string_view text, bool row_major, int64_t rows, int64_t columns) {
  const absl::Span<const OpDef> families[] = {CoreOps(), kCornerOps};
  const OpRegistry registry(families);
  ASSIGN_OR_RETURN(Graph graph, ParseGraph(text, registry));
  HiddenMemoryBackend backend;
  ASSIGN_OR_RETURN(const CompiledProgramPtr program,
                   Compile(std::move(graph), {.device = "test:0", .row_major = row_major}, Fingerprint(), &backend));
  Literal x = *Literal::Create({DType::kI64, {4, 5}});
  for (int64_t i = 0; i < 20; ++i) x.mutable_values<int64_t>()[static_cast<size_t>(i)] = i;
  return RunCompiled(*program, {x, Literal::Scalar(rows), Literal::Scalar(columns)});
}

TEST(StagedProgramTest, NodesOfOneExpansionDecideSizesOfTheirOwn) {
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : i64[4,5]
    %k = input : i64[]
    %l = input : i64[]
    %y = example.v1.Corner(%x, %k, %l)
    %r = reduce(%y) {kind = min, dimensions = [0]}
    %c = example.v1.Corner(%y, %l, %k)
    output "y" = %y
    output "r" = %r
    output "c" = %c
  })";
  for (bool row_major : {false, true}) {
    const auto got = RunCorner(kText, row_major, 2, 3);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ((*got)[0].shape(), (Shape{2, 3}));
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        EXPECT_EQ((*got)[0].values<int64_t>()[static_cast<size_t>(i + 2 * j)], -(i + 4 * j));
      }
    }
    EXPECT_EQ((*got)[1].shape(), (Shape{3}));
    EXPECT_EQ((*got)[2].shape(), (Shape{2, 2}));
  }
}

TEST(StagedProgramTest, GuardsOnSizesOfAnExpansionMeanTheRightOnes) {
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : i64[4,5]
    %k = input : i64[]
    %l = input : i64[]
    %z = constant() {value = i64[2] [7, 7]}
    %y = example.v1.Corner(%x, %k, %l)
    %rows = reduce(%y) {kind = sum, dimensions = [1]}
    %sum = add(%rows, %z)
    output "sum" = %sum
  })";
  EXPECT_TRUE(RunCorner(kText, false, 2, 3).ok());
  const absl::Status refused = RunCorner(kText, false, 3, 2).status();
  EXPECT_EQ(ReasonOf(refused), "SHAPE_MISMATCH");
  EXPECT_EQ(DetailOf(refused)->node, "sum");
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
