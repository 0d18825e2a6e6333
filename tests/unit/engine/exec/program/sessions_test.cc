#include "engine/exec/program/sessions.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/exec/binding/segment_profile.h"
#include "engine/exec/program/segment_text.h"
#include "engine/fusion/fused_op.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/testlib/runs/hidden_memory_backend.h"

namespace tensord {
namespace {

using testing::ElementsAre;

constexpr absl::string_view kChain = R"(graph "g" {
  %x = input : f32[2,6]
  %a = exp(%x)
  %v = reshape(%a) {shape = [12]}
  %b = negate(%v)
  %c = add(%b, %v)
  output "y" = %c
  output "x" = %x
})";

constexpr absl::string_view kCut = R"(graph "g" {
  %x = input : i64[n]
  %k = reduce(%x) {kind = sum, dimensions = [0]}
  %cut = dynamic_truncate(%x, %k) {dimension = 0}
  %y = negate(%cut)
  output "y" = %y
})";

Graph Typed(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, CoreRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return Graph();
  EXPECT_TRUE(InferTypes(&*graph).ok());
  return *std::move(graph);
}

ExecProgram Lower(absl::string_view text) {
  const Graph graph = Typed(text);
  ExecProgram program = LowerToProgram(graph);
  program.inputs = graph.inputs();
  program.one_session = true;
  return program;
}

TEST(SessionsTest, OneSessionHoldsNeighboursAndRenamingIsNoSegment) {
  ExecProgram program = Lower(kChain);
  const std::vector<int32_t> segments = SegmentsOf(program);
  EXPECT_THAT(segments, ElementsAre(0, 2, 3));
  EXPECT_THAT(SessionsOf(program, segments), ElementsAre(SessionRange{.begin = 0, .end = 3}));
  program.one_session = false;
  EXPECT_THAT(SessionsOf(program, segments),
              ElementsAre(SessionRange{.begin = 0, .end = 1}, SessionRange{.begin = 1, .end = 2},
                          SessionRange{.begin = 2, .end = 3}));
}

TEST(SessionsTest, HostAndBoundaryInstructionsEndASession) {
  ExecProgram program = Lower(kCut);
  EXPECT_THAT(SessionsOf(program, SegmentsOf(program)),
              ElementsAre(SessionRange{.begin = 0, .end = 1},
                          SessionRange{.begin = 1, .end = 2, .kind = InstructionKind::kHost},
                          SessionRange{.begin = 2, .end = 3}));

  program = Lower(kChain);
  OpDef extension = Def(CoreOp::kExp);
  extension.family = "tensord.linalg.v1";
  program.instructions[2].op = &extension;
  EXPECT_THAT(SessionsOf(program, SegmentsOf(program)),
              ElementsAre(SessionRange{.begin = 0, .end = 1},
                          SessionRange{.begin = 1, .end = 2, .kind = InstructionKind::kBoundary},
                          SessionRange{.begin = 2, .end = 3}));
  ExecInstruction fused = program.instructions[0];
  fused.op = &FusedOp();
  EXPECT_EQ(KindOf(fused), InstructionKind::kSession);
  EXPECT_TRUE(SessionsOf(program, {}).empty());
}

TEST(SessionsTest, AFusedSegmentIsNamedAfterItsBody) {
  ExecInstruction fused = Lower(kChain).instructions[0];
  EXPECT_EQ(KernelName(fused), "exp");
  EXPECT_THAT(NodesOf(fused), ElementsAre("a"));
  fused.op = &FusedOp();
  fused.body = std::make_shared<const Graph>(Typed(kChain));
  EXPECT_EQ(KernelName(fused), "fused: exp reshape negate add");
  EXPECT_THAT(NodesOf(fused), ElementsAre("a", "v", "b", "c"));
  std::string chain = "graph \"g\" {\n  %v0 = input : f32[]\n";
  for (int i = 0; i < 40; ++i) chain += "  %v" + std::to_string(i + 1) + " = exp(%v" + std::to_string(i) + ")\n";
  fused.body = std::make_shared<const Graph>(Typed(chain + "  output \"y\" = %v40\n}"));
  EXPECT_THAT(KernelName(fused), testing::EndsWith(" exp and 8 more"));
  EXPECT_EQ(NodesOf(fused).size(), 40u);
}

// Segmented or not: the same results, a profile with an entry a segment, in order and within the run.
class SessionRunTest : public testing::TestWithParam<bool> {
 protected:
  CompiledProgramPtr CompileText(absl::string_view text) {
    ExecProgram program = Lower(text);
    program.one_session = GetParam();
    auto compiled = CompiledProgram::Create(std::move(program),
                                            {.fingerprint = Fingerprint(), .device = "test:0", .names = {}}, &backend_);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? *compiled : nullptr;
  }

  // Runs on {1, 2, 3, …}.
  ProgramResults Run(const CompiledProgram& program, const ConcreteType& type, RunTimes* times) {
    std::mt19937_64 random(7);
    const auto held = std::make_shared<const Literal>(RandomLiteral(type, Values::kIntegers, &random));
    const auto x = backend_.Import(held->bytes().data(), type.num_bytes(), held);
    EXPECT_TRUE(x.ok()) << x.status();
    auto results = program.Run(std::vector<ConcreteType>{type}, std::vector<BufferPtr>{*x}, nullptr, times);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : ProgramResults();
  }

  std::string Bytes(const BufferPtr& buffer) {
    const auto bytes = backend_.Export(buffer);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return std::string(static_cast<const char*>(bytes->get()), static_cast<size_t>(buffer->size_bytes()));
  }

  HiddenMemoryBackend backend_;
};

TEST_P(SessionRunTest, SegmentsHaveTimesInOrder) {
  const CompiledProgramPtr program = CompileText(kChain);
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->segment_count(), 3);
  const auto start = std::chrono::steady_clock::now();
  RunTimes times;
  const ProgramResults timed = Run(*program, {DType::kF32, {2, 6}}, &times);
  const ProgramResults untimed = Run(*program, {DType::kF32, {2, 6}}, nullptr);
  const absl::Duration run = absl::FromChrono(std::chrono::steady_clock::now() - start);
  ASSERT_EQ(timed.buffers.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(Bytes(timed.buffers[i]), Bytes(untimed.buffers[i]));

  const std::vector<SegmentProfile> profile = MakeProfile(times, start);
  ASSERT_EQ(profile.size(), 3u);
  EXPECT_EQ(profile[0].kernel, "exp (f32[2,6]) -> f32[2,6]");
  EXPECT_EQ(profile[2].kernel, "add (f32[12], f32[12]) -> f32[12]");
  EXPECT_THAT(profile[1].nodes, ElementsAre("b"));
  absl::Duration end = absl::ZeroDuration();
  for (const SegmentProfile& entry : profile) {
    EXPECT_GE(entry.start, end);
    EXPECT_GE(entry.duration, absl::ZeroDuration());
    end = entry.start + entry.duration;
  }
  EXPECT_LE(end, run);
}

TEST_P(SessionRunTest, StagesFollowEachOther) {
  const CompiledProgramPtr program = CompileText(kCut);
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->segment_count(), 3);  // reduce; what is left of dynamic_truncate, negate
  const auto start = std::chrono::steady_clock::now();
  RunTimes times;
  ASSERT_EQ(Run(*program, {DType::kI64, {5}}, &times).buffers.size(), 1u);
  ASSERT_EQ(times.parts.size(), 2u);
  const std::vector<SegmentProfile> profile = MakeProfile(times, start);
  ASSERT_EQ(profile.size(), 3u);
  EXPECT_THAT(profile[0].nodes, ElementsAre("k"));
  EXPECT_THAT(profile[1].nodes, ElementsAre("cut"));
  EXPECT_THAT(profile[2].nodes, ElementsAre("y"));
  EXPECT_GE(profile[1].start, profile[0].start + profile[0].duration);
}

TEST_P(SessionRunTest, AProgramOfNothingRuns) {
  const CompiledProgramPtr program = CompileText("graph \"g\" {\n  %x = input : f32[3]\n  output \"y\" = %x\n}");
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->segment_count(), 0);
  RunTimes times;
  EXPECT_EQ(Run(*program, {DType::kF32, {3}}, &times).buffers.size(), 1u);
  EXPECT_TRUE(MakeProfile(times, std::chrono::steady_clock::now()).empty());
}

INSTANTIATE_TEST_SUITE_P(Matrix, SessionRunTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "OneSession" : "ASessionASegment"; });

TEST(SegmentProfileTest, TheLastEntryStandsForAllThatAreLeft) {
  HiddenMemoryBackend backend;
  ExecProgram lowered = Lower(kChain);
  auto compiled = CompiledProgram::Create(std::move(lowered),
                                          {.fingerprint = Fingerprint(), .device = "test:0", .names = {}}, &backend);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const auto bound = (*compiled)->Bind({{DType::kF32, {2, 6}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  const std::chrono::steady_clock::time_point start;
  const SegmentTime time{.start = start, .end = start + std::chrono::microseconds(1)};
  const auto times_of = [&](size_t segments) {
    RunTimes times;
    while (segments > 0) {
      const size_t part = std::min(segments, (*bound)->num_segments());
      times.parts.push_back({.bound = *bound, .times = std::vector<SegmentTime>(part, time)});
      segments -= part;
    }
    return times;
  };
  EXPECT_EQ(MakeProfile(times_of(kMaxProfileEntries), start).back().nodes.size(), 1u);
  const std::vector<SegmentProfile> profile = MakeProfile(times_of(kMaxProfileEntries + 4), start);
  ASSERT_EQ(profile.size(), kMaxProfileEntries);
  EXPECT_EQ(profile.back().kernel, "5 further segments");
  EXPECT_EQ(profile.back().duration, absl::Microseconds(5));
  EXPECT_TRUE(profile.back().nodes.empty());
}

}  // namespace
}  // namespace tensord
