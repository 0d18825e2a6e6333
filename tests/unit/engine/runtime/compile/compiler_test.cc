#include "engine/runtime/compile/compiler.h"

#include <atomic>
#include <cmath>
#include <future>
#include <set>
#include <thread>
#include <vector>

#include "engine/base/stop_signal.h"
#include "engine/exec/program/program_passes.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/compile/explain.h"
#include "engine/runtime/devices/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

constexpr absl::string_view kText = R"(graph "g" {
  %x = input : f32[2,3]
  %t = transpose(%x) {permutation = [1, 0]}
  %angle = sin(%t)
  %dead = cos(%t)
  output "y" = %angle
})";

TEST(Compile, AnOpThatTheDeviceLacksNamesNodeOpAndDevice) {
  GatedBackend backend;
  backend.lacks = "sin";
  const auto program = Compile(ParsedGraph(kText), {.device = "gated:0"}, Fingerprint(), &backend);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), absl::StatusCode::kUnimplemented);
  const RefusalDetail detail = *DetailOf(program.status());
  EXPECT_EQ(detail.reason, "UNSUPPORTED_ON_DEVICE");
  EXPECT_EQ(detail.node, "angle");
  EXPECT_EQ(detail.op, "sin");
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("gated"));
  backend.lacks = "cos";  // nobody reads its result
  EXPECT_TRUE(Compile(ParsedGraph(kText), {.device = "gated:0"}, Fingerprint(), &backend).ok());
}

TEST(CompiledProgram, ReversalsOfArgumentsAreKeptByType) {
  GatedBackend backend;
  const auto program = Compile(ParsedGraph(kText), {.device = "gated:0"}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  const int64_t bytes_before = (*program)->size_bytes();
  backend.prepares_slowly = true;  // and so its preparations are counted
  const auto values = std::make_shared<std::vector<float>>(6);
  for (size_t i = 0; i < 6; ++i) (*values)[i] = static_cast<float>(i);
  const BufferPtr rows = *backend.Import(values->data(), 24, values);
  const auto second_of = [&](const ConcreteType& type) {
    const absl::StatusOr<BufferPtr> columns = (*program)->InSlotOrder(type, rows, nullptr);
    EXPECT_TRUE(columns.ok()) << columns.status();
    return columns.ok() ? static_cast<const float*>(backend.Export(*columns)->get())[1] : -1;
  };
  const ConcreteType wide = {.dtype = DType::kF32, .shape = {2, 3}};
  EXPECT_EQ(second_of(wide), 3);
  EXPECT_EQ(second_of(wide), 3);
  EXPECT_EQ(backend.prepared_on.size(), 1u);
  EXPECT_GT((*program)->size_bytes(), bytes_before);
  EXPECT_EQ(second_of({.dtype = DType::kF32, .shape = {3, 2}}), 2);
  EXPECT_EQ(backend.prepared_on.size(), 2u);
}

// A run that is not wanted any more asks for them too.
TEST(CompiledProgram, TimesAreThereWhateverTheSignalSays) {
  GatedBackend backend;
  const auto program = Compile(ParsedGraph(R"(graph "g" {
    %x = input : f32[n]
    %y = exp(%x)
    output "y" = %y
  })"),
                               {.device = "gated:0"}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  const std::atomic<bool> abandoned{true};
  StopSignal stop(&abandoned);
  const StopSignal::Scope scope(&stop);
  EXPECT_EQ((*program)->expected_time({{.dtype = DType::kF32, .shape = {4}}}), absl::ZeroDuration());
}

TEST(CompiledProgram, ReversalsAreMadeOnThePool) {
  GatedBackend backend;
  const auto program = Compile(ParsedGraph(kText), {.device = "gated:0"}, Fingerprint(), &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  backend.prepares_slowly = true;  // and so its preparations are counted
  const ConcreteType type = {.dtype = DType::kF32, .shape = {2, 3}};
  EXPECT_EQ((*program)->FindReversal(type), nullptr);
  CompilePool pool(1, 10);
  std::promise<absl::StatusOr<CompiledProgram::ReversalPtr>> made;
  (*program)->CompileReversal(type, &pool, "t",
                              [&](absl::StatusOr<CompiledProgram::ReversalPtr> reversal, absl::Duration) {
                                made.set_value(std::move(reversal));
                              });
  const auto reversal = made.get_future().get();
  ASSERT_TRUE(reversal.ok()) << reversal.status();
  EXPECT_EQ((*program)->FindReversal(type), *reversal);
  ASSERT_EQ(backend.prepared_on.size(), 1u);
  EXPECT_NE(backend.prepared_on[0], std::this_thread::get_id());

  const auto values = std::make_shared<std::vector<float>>(6);
  for (size_t i = 0; i < 6; ++i) (*values)[i] = static_cast<float>(i);
  RunRequest run;
  run.program = *program;
  run.arguments.push_back(
      {.type = type, .buffer = *backend.Import(values->data(), 24, values), .reversed = true, .reversal = *reversal});
  const auto outcome = RunProgram(run, absl::ZeroDuration());
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(backend.prepared_on.size(), 1u) << "the run prepared nothing";
  // The result is [3,2]: its second element is that of the first row and the second column.
  EXPECT_EQ(static_cast<const float*>(outcome->results[0].bytes.get())[1], std::sin(1.0f));
}

TEST(Compile, TellsOfItsPhases) {
  GatedBackend backend;
  std::vector<CompilePhase> phases;
  absl::Duration parts, total;
  const CompileWatch watch = [&](CompilePhase phase, absl::Duration time) {
    phases.push_back(phase);
    (phase == CompilePhase::kTotal ? total : parts) += time;
  };
  ASSERT_TRUE(Compile(ParsedGraph(kText), {.device = "gated:0"}, Fingerprint(), &backend, {}, watch).ok());
  EXPECT_THAT(phases, ElementsAre(CompilePhase::kInfer, CompilePhase::kExpand, CompilePhase::kPasses,
                                  CompilePhase::kLower, CompilePhase::kPrepare, CompilePhase::kTotal));
  EXPECT_EQ(parts, total);
  EXPECT_GT(total, absl::ZeroDuration());
  phases.clear();
  backend.lacks = "sin";
  ASSERT_FALSE(Compile(ParsedGraph(kText), {.device = "gated:0"}, Fingerprint(), &backend, {}, watch).ok());
  EXPECT_THAT(phases, ElementsAre(CompilePhase::kInfer, CompilePhase::kExpand, CompilePhase::kPasses))
      << "up to the one that refused it";
}

TEST(Compile, DisabledPassesAreNotRun) {
  HiddenMemoryBackend backend;
  const auto all = Compile(ParsedGraph(kText), {.device = "h"}, Fingerprint(), &backend);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(FiredPasses((*all)->program().passes), IsSupersetOf({"eliminate_dead_code", "mark_last_uses"}));
  const auto some =
      Compile(ParsedGraph(kText), {.device = "h", .disabled_passes = {"eliminate_dead_code"}}, Fingerprint(), &backend);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_THAT(FiredPasses((*some)->program().passes), Contains("mark_last_uses"));
  for (const PassRecord& record : (*some)->program().passes) EXPECT_NE(record.name, "eliminate_dead_code");
  const auto none =
      Compile(ParsedGraph(kText), {.device = "h", .disabled_passes = PassNames()}, Fingerprint(), &backend);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE((*none)->program().passes.empty());
  EXPECT_EQ((*none)->program().instructions.size(), 2u);  // the transpose too, but never what nobody reads
  const auto unknown =
      Compile(ParsedGraph(kText), {.device = "h", .disabled_passes = {"no_such_pass"}}, Fingerprint(), &backend);
  EXPECT_EQ(DetailOf(unknown.status())->reason, "PASS_UNKNOWN");
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("\"no_such_pass\""));
}

TEST(Compile, KeepsTheTypesOfTheWire) {
  HiddenMemoryBackend backend;
  for (bool row_major : {false, true}) {
    const auto program = Compile(ParsedGraph(kText), {.device = "h", .row_major = row_major}, Fingerprint(), &backend);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(ToString((*program)->program().inputs[0].type), "f32[2,3]");
    EXPECT_EQ(ToString((*program)->program().wire_outputs[0]), "f32[3,2]");
    EXPECT_EQ(ToString((*program)->program().slot_types[0]), row_major ? "f32[3,2]" : "f32[2,3]");
    EXPECT_THAT(ExplainProgram(**program), HasSubstr("sin(%"));
  }
}

TEST(MakeProgramKey, EverythingThatChangesTheProgramCounts) {
  const std::vector<CompileSettings> settings = {
      {.device = "cpu:0"},
      {.device = "cpu:1"},
      {.device = "cpu:0", .row_major = true},
      {.device = "cpu:0", .disabled_passes = {"a"}},
      {.device = "cpu:0", .disabled_passes = {"a", "b"}},
      {.device = "cpu:0", .disabled_passes = {"ab"}},
      {.device = "cpu:0", .disabled_passes = {""}},
      {.device = "cpu:0", .enabled_passes = {"a"}},
      {.device = "cpu:0", .disabled_passes = {"a"}, .enabled_passes = {"a"}},
      {.device = "cpu:0", .tenant = "a"},
      {.device = "cpu:0", .tenant = "b"},
  };
  const Graph graph = ParsedGraph(kText);
  const Graph other = ParsedGraph(
      "graph \"g\" {\n%x = input : f32[2,4]\n%t = transpose(%x) {permutation = [1, 0]}\n"
      "%angle = sin(%t)\n%dead = cos(%t)\noutput \"y\" = %angle\n}");
  std::set<std::string> bytes, fingerprints;
  for (const CompileSettings& s : settings) {
    for (const Graph* g : {&graph, &other}) {
      const ProgramKey key = MakeProgramKey(*g, s);
      bytes.insert(key.bytes);
      fingerprints.insert(key.fingerprint.ToHex());
      EXPECT_EQ(key.fingerprint, Fingerprint::Of(key.bytes));
    }
  }
  EXPECT_EQ(bytes.size(), 2 * settings.size());
  EXPECT_EQ(fingerprints.size(), 2 * settings.size());
}

TEST(MakeProgramKey, NamesOfNodesDoNotCount) {
  const ProgramKey one =
      MakeProgramKey(ParsedGraph("graph \"a\" {\n%x = input : f32[2]\n%y = sin(%x)\noutput \"o\" = %y\n}"), {});
  const ProgramKey two =
      MakeProgramKey(ParsedGraph("graph \"b\" {\n%x = input : f32[2]\n%z = sin(%x)\noutput \"o\" = %z\n}"), {});
  EXPECT_EQ(one.bytes, two.bytes);
}

TEST(Compile, IsBrokenOffAfterAnyOfItsPhases) {
  GatedBackend backend;
  for (const CompilePhase last :
       {CompilePhase::kInfer, CompilePhase::kExpand, CompilePhase::kPasses, CompilePhase::kLower}) {
    std::atomic<bool> interrupted{false};
    std::vector<CompilePhase> phases;
    const CompileWatch watch = [&](CompilePhase phase, absl::Duration) {
      phases.push_back(phase);
      if (phase == last) interrupted = true;
    };
    StopSignal stop(&interrupted);
    const StopSignal::Scope scope(&stop);
    const auto program = Compile(ParsedGraph(kText), {.device = "gated:0"}, Fingerprint(), &backend, {}, watch);
    EXPECT_EQ(program.status().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(phases.back(), last);
  }
  EXPECT_TRUE(Compile(ParsedGraph(kText), {.device = "gated:0"}, Fingerprint(), &backend).ok()) << "out of the scope";
}

}  // namespace
}  // namespace tensord
