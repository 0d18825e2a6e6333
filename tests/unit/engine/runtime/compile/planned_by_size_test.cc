// Programs of ops that are made into other things for other sizes.
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/exec/binding/segment_profile.h"
#include "engine/ir/graph_builder.h"
#include "engine/ir/op_registry.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/programs/program_cache.h"
#include "gtest/gtest.h"
#include "tests/testlib/runs/hidden_memory_backend.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

// The test's own op: a + b for short operands and a * b for long ones, so that a result tells the sizes of its plan.
absl::StatusOr<ResultTypes> InferPick(InferContext& context) {
  RETURN_IF_ERROR(context.RequireSameShape(context.operand(0), context.operand(1), "a and b"));
  return ResultTypes{context.operand(0)};
}

absl::StatusOr<ExpandedResults> ExpandPick(const ExpandCall& call) {
  const Dim& size = call.graph.type(call.operands[0]).shape[0];
  const bool is_long = size.is_static() && size.size.constant() >= 10;
  ASSIGN_OR_RETURN(const ValueId result,
                   call.graph.Add(Def(is_long ? CoreOp::kMultiply : CoreOp::kAdd), call.operands.subspan(0, 2)));
  return ExpandedResults{result};
}

constexpr OpDef kPick[] = {{.family = "example",
                            .index = 0,
                            .name = "example.v1.Pick",
                            .summary = "Of a test.",
                            .op_class = OpClass::kExtension,
                            .min_operands = 2,
                            .max_operands = 3,
                            .attrs = {},
                            .traits = kPlannedBySize,
                            .dtypes = kAnyDType,
                            .infer = &InferPick,
                            .refusals = RefusalTable::None("a test's"),
                            .reference = Facet<ReferenceRule>::None("a test's"),
                            .permute = Facet<PermuteRule>::None("a test's"),
                            .jvp = Facet<JvpRule>::None("a test's"),
                            .linear_transpose = Facet<TransposeRule>::None("a test's"),
                            .expand = &ExpandPick}};

absl::StatusOr<CompiledProgramPtr> CompileText(absl::string_view text, bool row_major, Backend* backend,
                                               const BindingOptions& bindings = {},
                                               const CompileWatch& watch = nullptr) {
  const absl::Span<const OpDef> families[] = {CoreOps(), kPick};
  static const OpRegistry* const registry = new OpRegistry(families);
  ASSIGN_OR_RETURN(Graph graph, ParseGraph(text, *registry));
  return Compile(std::move(graph), {.device = "h", .row_major = row_major}, Fingerprint(), backend, bindings, watch);
}

constexpr absl::string_view kSymbolic = R"(graph "g" {
  %a = input : f32[n,2]
  %b = input : f32[m,2]
  %picked = example.v1.Pick(%a, %b, %a)
  %zero = constant() {value = f32[] [0]}
  %zeros = broadcast_in_dim(%zero) {shape = [n, 2]}
  %y = add(%picked, %zeros)
  output "y" = %y
})";

// The first element of the result for 3s and 5s of this shape.
absl::StatusOr<float> FirstOf(const CompiledProgram& program, Backend* backend, ConcreteType a, ConcreteType b,
                              RunTimes* times = nullptr) {
  std::vector<BufferPtr> buffers;
  const std::vector<std::pair<ConcreteType, float>> arguments = {{a, 3}, {b, 5}};
  for (const auto& [type, value] : arguments) {
    const auto values =
        std::make_shared<std::vector<float>>(static_cast<size_t>(type.num_bytes()) / sizeof(float), value);
    ASSIGN_OR_RETURN(BufferPtr buffer, backend->Import(values->data(), type.num_bytes(), values));
    buffers.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(ProgramResults results, program.Run({a, b}, buffers, nullptr, times));
  EXPECT_EQ(results.types[0].shape, a.shape);
  ASSIGN_OR_RETURN(const std::shared_ptr<const void> bytes, backend->Export(results.buffers[0]));
  return *static_cast<const float*>(bytes.get());
}

TEST(PlannedBySize, EachSetOfSizesHasAPlanOfItsOwn) {
  for (const bool row_major : {false, true}) {
    HiddenMemoryBackend backend;
    const auto program = CompileText(kSymbolic, row_major, &backend);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_TRUE((*program)->is_compiled_for_sizes());
    for (int round = 0; round < 2; ++round) {
      for (const int64_t n : {3, 30, 9, 10}) {
        ConcreteType type = {.dtype = DType::kF32, .shape = {n, 2}};
        if (row_major) std::swap(type.shape[0], type.shape[1]);
        const absl::StatusOr<float> first = FirstOf(**program, &backend, type, type);
        ASSERT_TRUE(first.ok()) << first.status();
        EXPECT_EQ(*first, n < 10 ? 8 : 15) << n;
      }
    }
  }
}

TEST(PlannedBySize, ADeviceThatPreparesSlowlyPreparesWhereProgramsAreCompiled) {
  constexpr absl::string_view kSum = R"(graph "g" {
    %a = input : f32[n,2]
    %b = input : f32[n,2]
    %y = add(%a, %b)
    output "y" = %y
  })";
  GatedBackend backend;
  const auto bound = CompileText(kSum, false, &backend);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_FALSE((*bound)->is_compiled_for_sizes());

  backend.prepares_slowly = true;
  const auto program = CompileText(kSum, false, &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_TRUE((*program)->is_compiled_for_sizes());
  EXPECT_TRUE(backend.prepared_on.empty()) << "no size is known yet";
  const ConcreteType type = {.dtype = DType::kF32, .shape = {3, 2}};
  const std::vector<ConcreteType> types = {type, type};
  CompilePool pool(1, 10);
  CompiledProgramPtr sized;
  Event done;
  (*program)->CompileForSizes(types, &pool, "t", [&](absl::StatusOr<CompiledProgramPtr> made, absl::Duration) {
    ASSERT_TRUE(made.ok()) << made.status();
    sized = *made;
    done.Set();
  });
  done.Wait();
  ASSERT_EQ(backend.prepared_on.size(), 1u);
  EXPECT_NE(backend.prepared_on[0], std::this_thread::get_id());
  const absl::StatusOr<float> first = FirstOf(*sized, &backend, type, type);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, 8);
  EXPECT_EQ(backend.prepared_on.size(), 1u) << "the run prepared nothing";
  EXPECT_FALSE(sized->is_compiled_for_sizes());
}

TEST(PlannedBySize, ConstantsAreOnTheDeviceOnceForAllSizes) {
  // Row-major programs have a constant of their own, of the other order.
  constexpr absl::string_view kText = R"(graph "g" {
    %a = input : f32[n,4]
    %c = constant() {value = f32[4,4] [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}
    %y = dot_general(%a, %c) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
    output "y" = %y
  })";
  for (const bool prepares_slowly : {false, true}) {
    for (const bool row_major : {false, true}) {
      GatedBackend backend;
      backend.prepares_slowly = prepares_slowly;
      auto program = CompileText(kText, row_major, &backend);
      ASSERT_TRUE(program.ok()) << program.status();
      ASSERT_EQ((*program)->is_compiled_for_sizes(), prepares_slowly);
      for (int64_t n = 1; n < 6; ++n) {
        ConcreteType type = {.dtype = DType::kF32, .shape = {n, 4}};
        if (row_major) std::swap(type.shape[0], type.shape[1]);
        const BufferPtr argument = *backend.Allocate(type.num_bytes());
        const auto results = (*program)->Run({type}, {argument}, nullptr);
        ASSERT_TRUE(results.ok()) << results.status();
        EXPECT_EQ(backend.Memory().in_use_bytes, 64 + type.num_bytes() + results->buffers[0]->size_bytes()) << n;
      }
      *program = nullptr;
      EXPECT_EQ(backend.live_buffers(), 0);
    }
  }
}

TEST(PlannedBySize, TellsOfCompilationsForSizesToo) {
  HiddenMemoryBackend backend;
  std::map<CompilePhase, int> told;
  const auto program =
      CompileText(kSymbolic, false, &backend, {}, [&told](CompilePhase phase, absl::Duration) { ++told[phase]; });
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(told[CompilePhase::kTotal], 1);
  EXPECT_EQ(told[CompilePhase::kSizes], 0);
  for (int round = 0; round < 2; ++round) {
    for (const int64_t n : {3, 30}) {
      const ConcreteType type = {.dtype = DType::kF32, .shape = {n, 2}};
      ASSERT_TRUE(FirstOf(**program, &backend, type, type).ok());
    }
  }
  EXPECT_EQ(told[CompilePhase::kTotal], 1);
  EXPECT_EQ(told[CompilePhase::kSizes], 2) << "one a set of sizes, which is kept";
  EXPECT_EQ(told[CompilePhase::kPasses], 3);
}

TEST(PlannedBySize, MoreSetsOfSizesThanAreKept) {
  HiddenMemoryBackend backend;
  const auto program = CompileText(kSymbolic, false, &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  RunTimes times;  // speaks of programs that are forgotten by then
  for (int64_t n = 1; n <= 3 * BindingOptions().max_sets; ++n) {
    const ConcreteType type = {.dtype = DType::kF32, .shape = {n, 2}};
    const absl::StatusOr<float> first = FirstOf(**program, &backend, type, type, &times);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(*first, n < 10 ? 8 : 15) << n;
  }
  for (const SegmentProfile& segment : MakeProfile(times, {})) EXPECT_FALSE(segment.nodes.empty());
}

TEST(PlannedBySize, ThePlansCountInTheCacheOfPrograms) {
  HiddenMemoryBackend backend;
  const auto program = CompileText(kSymbolic, false, &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  const int64_t alone = (*program)->size_bytes();
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 3 * alone}, &pool);
  const ProgramKey key{.fingerprint = Fingerprint::Of("a"), .bytes = "a"};
  const ProgramKey other{.fingerprint = Fingerprint::Of("b"), .bytes = "b"};
  for (const ProgramKey& k : {key, other}) {
    const CompiledProgramPtr made = k.bytes == "a" ? *program : *CompileText(kSymbolic, false, &backend);
    Event done;
    cache.GetOrCompile(
        k, [made] { return made; }, [&done](const auto&) { done.Set(); });
    done.Wait();
  }
  EXPECT_EQ(cache.stats().entries, 2);
  EXPECT_EQ(cache.stats().bytes, 2 * alone + 2);
  int64_t last = alone;
  for (const int64_t n : {3, 30, 9, 30}) {
    const ConcreteType type = {.dtype = DType::kF32, .shape = {n, 2}};
    ASSERT_TRUE(FirstOf(**program, &backend, type, type).ok());
    if (n == 30 && last > 2 * alone) continue;  // it is there already
    EXPECT_GT((*program)->size_bytes(), last + alone / 4);
    last = (*program)->size_bytes();
  }
  EXPECT_EQ((*program)->size_bytes(), last);
  ASSERT_TRUE(cache.Find(key.fingerprint).ok());
  EXPECT_EQ(cache.stats().entries, 1) << "the other had to go";
  EXPECT_EQ(cache.stats().bytes, last + 1);
  EXPECT_FALSE(cache.Find(other.fingerprint).ok());
}

TEST(PlannedBySize, SizesThatDoNotFitAreRefused) {
  HiddenMemoryBackend backend;
  const auto program = CompileText(kSymbolic, false, &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  const ConcreteType three = {.dtype = DType::kF32, .shape = {3, 2}};
  const ConcreteType four = {.dtype = DType::kF32, .shape = {4, 2}};
  const ConcreteType other_dtype = {.dtype = DType::kF64, .shape = {3, 2}};
  const absl::Status unequal = FirstOf(**program, &backend, three, four).status();
  EXPECT_EQ(DetailOf(unequal).value_or(RefusalDetail{}).reason, "SHAPE_MISMATCH") << unequal;
  EXPECT_EQ(DetailOf(unequal).value_or(RefusalDetail{}).node, "picked");
  const absl::Status mismatch = FirstOf(**program, &backend, other_dtype, three).status();
  EXPECT_EQ(DetailOf(mismatch).value_or(RefusalDetail{}).reason, "ARGUMENT_MISMATCH") << mismatch;
}

std::vector<ConcreteType> TypesOf(int64_t n) {
  const ConcreteType type = {.dtype = DType::kF32, .shape = {n, 2}};
  return {type, type};
}

TEST(PlannedBySize, ThePoolCompilesOnceForAllWhoAsk) {
  HiddenMemoryBackend backend;
  const auto stats = std::make_shared<BindingStats>();
  const auto program = CompileText(kSymbolic, false, &backend, {.stats = stats});
  ASSERT_TRUE(program.ok()) << program.status();
  Inbox<std::pair<CompiledProgramPtr, absl::Duration>> inbox;
  const auto take = [&inbox](absl::StatusOr<CompiledProgramPtr> sized, absl::Duration time) {
    EXPECT_TRUE(sized.ok()) << sized.status();
    inbox.Put({sized.value_or(nullptr), time});
  };
  Event begun, go;
  CompilePool pool(1, 10);
  ASSERT_TRUE(pool.Submit("a",
                          [&] {
                            begun.Set();
                            go.Wait();
                          })
                  .ok());
  begun.Wait();
  EXPECT_EQ((*program)->FindForSizes(TypesOf(30)), nullptr);
  for (int i = 0; i < 3; ++i) (*program)->CompileForSizes(TypesOf(30), &pool, "a", take);
  EXPECT_EQ(pool.stats().queued, 1);
  EXPECT_EQ(inbox.size(), 0u);
  go.Set();
  const auto got = inbox.WaitFor(3);
  EXPECT_GT(got[0].second, absl::ZeroDuration());
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(got[i].first, got[0].first);
    EXPECT_EQ(got[i].second, absl::ZeroDuration()) << "the others compiled nothing";
  }
  EXPECT_EQ((*program)->FindForSizes(TypesOf(30)), got[0].first);
  EXPECT_EQ(got[0].first->program().instructions[0].op->name, "multiply");
  EXPECT_TRUE(got[0].first->static_peak_bytes().has_value());
  const BindingStats::Counts counts = stats->counts(SizedKind::kProgram);
  EXPECT_EQ(counts.events[BindingStats::kMade], 1);
  EXPECT_EQ(counts.events[BindingStats::kJoined], 2);
  EXPECT_EQ(counts.entries, 1);
  EXPECT_EQ(counts.bytes, got[0].first->size_bytes());
  // A run of it is one of the program's.
  const ConcreteType type = TypesOf(30)[0];
  const absl::StatusOr<float> first = FirstOf(*got[0].first, &backend, type, type);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, 15);
  EXPECT_EQ((*program)->tally().count(), 1);
}

TEST(PlannedBySize, WhatThePoolRefusesAndWhatTheSizesAre) {
  HiddenMemoryBackend backend;
  const auto program = CompileText(kSymbolic, false, &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  Inbox<absl::Status> inbox;
  const auto take = [&inbox](absl::StatusOr<CompiledProgramPtr> sized, absl::Duration) { inbox.Put(sized.status()); };
  Event begun, go;
  CompilePool pool(1, 1);
  ASSERT_TRUE(pool.Submit("a",
                          [&] {
                            begun.Set();
                            go.Wait();
                          })
                  .ok());
  begun.Wait();
  const std::vector<ConcreteType> unequal = {TypesOf(3)[0], TypesOf(4)[0]};
  (*program)->CompileForSizes(unequal, &pool, "a", take);
  (*program)->CompileForSizes(TypesOf(5), &pool, "a", take);
  EXPECT_EQ(DetailOf(inbox.WaitFor(1)[0])->reason, "QUEUE_FULL");
  go.Set();
  const RefusalDetail detail = *DetailOf(inbox.WaitFor(2)[1]);
  EXPECT_EQ(detail.reason, "SHAPE_MISMATCH");
  EXPECT_EQ(detail.node, "picked");
}

// The asker may have given up, and the cache may have dropped the program.
TEST(PlannedBySize, AProgramLivesUntilItsSizesAreCompiled) {
  HiddenMemoryBackend backend;
  auto program = CompileText(kSymbolic, false, &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  Event go, done;
  CompilePool pool(1, 10);
  ASSERT_TRUE(pool.Submit("a", [&go] { go.Wait(); }).ok());
  (*program)->CompileForSizes(TypesOf(5), &pool, "a", [&done](const auto& sized, absl::Duration) {
    EXPECT_TRUE(sized.ok()) << sized.status();
    done.Set();
  });
  *program = nullptr;
  go.Set();
  done.Wait();
}

TEST(PlannedBySize, KnownSizesNeedNoSecondPlan) {
  HiddenMemoryBackend backend;
  const auto program = CompileText(R"(graph "g" {
    %a = input : f32[30]
    %y = example.v1.Pick(%a, %a, %a)
    output "y" = %y
  })",
                                   false, &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE((*program)->is_compiled_for_sizes());
  EXPECT_EQ((*program)->program().instructions[0].op->name, "multiply");
}

TEST(PlannedBySize, TwoOperandsLeaveNothingToPlan) {
  HiddenMemoryBackend backend;
  const auto program = CompileText(R"(graph "g" {
    %a = input : f32[n]
    %y = example.v1.Pick(%a, %a)
    output "y" = %y
  })",
                                   false, &backend);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE((*program)->is_compiled_for_sizes());
}

}  // namespace
}  // namespace tensord
