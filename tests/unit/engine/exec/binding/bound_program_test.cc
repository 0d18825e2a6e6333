#include "engine/exec/binding/bound_program.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "engine/runtime/compile/compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/testlib/runs/hidden_memory_backend.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

using testing::HasSubstr;

CompiledProgramPtr CompileText(absl::string_view text, Backend* backend, bool row_major = false) {
  absl::StatusOr<CompiledProgramPtr> program =
      Compile(ParsedGraph(text), {.device = "test:0", .row_major = row_major}, Fingerprint(), backend);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : nullptr;
}

std::vector<Literal> Arguments(const std::vector<ConcreteType>& types) {
  std::mt19937_64 random(7);
  std::vector<Literal> arguments;
  for (const ConcreteType& type : types) arguments.push_back(RandomLiteral(type, Values::kIntegers, &random));
  return arguments;
}

// Runs on memory that the host cannot read, and compares with the reference.
void ExpectAsReference(const CompiledProgram& program, absl::string_view text, const std::vector<Literal>& arguments) {
  Graph graph = ParsedGraph(text);
  const auto guards = InferTypes(&graph);
  ASSERT_TRUE(guards.ok()) << guards.status();
  const auto want = EvaluateReference(graph, *guards, arguments);
  ASSERT_TRUE(want.ok()) << want.status();
  const auto got = RunCompiled(program, arguments);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->size(), want->size());
  for (size_t i = 0; i < want->size(); ++i) EXPECT_TRUE((*got)[i] == (*want)[i]) << "output " << i << "\n" << text;
}

constexpr absl::string_view kOddOutputs = R"(graph "g" {
  %x = input : f32[2,6]
  %s = input : f32[]
  %k = constant() {value = f32[3] [1, 2, 3]}
  %r = reshape(%x) {shape = [3, 4]}
  %rr = reshape(%r) {shape = [12]}
  %a = exp(%x)
  %ar = reshape(%a) {shape = [6, 2]}
  %e = reshape(%k) {shape = [1, 3, 1]}
  output "x" = %x
  output "x again" = %x
  output "s" = %s
  output "k" = %k
  output "k too" = %k
  output "r" = %r
  output "rr" = %rr
  output "e" = %e
  output "a" = %a
  output "a again" = %a
  output "ar" = %ar
})";

TEST(BoundProgram, OutputsThatAreLeavesDuplicatesOrOtherNames) {
  for (bool row_major : {false, true}) {
    HiddenMemoryBackend backend;
    const CompiledProgramPtr program = CompileText(kOddOutputs, &backend, row_major);
    ASSERT_NE(program, nullptr);
    ExpectAsReference(*program, kOddOutputs,
                      Arguments({{.dtype = DType::kF32, .shape = {2, 6}}, {.dtype = DType::kF32, .shape = {}}}));
  }
}

std::vector<BufferPtr> Import(Backend* backend, const std::vector<Literal>& literals) {
  std::vector<BufferPtr> buffers;
  for (const Literal& literal : literals) {
    const auto held = std::make_shared<const Literal>(literal);
    buffers.push_back(*backend->Import(held->bytes().data(), static_cast<int64_t>(held->bytes().size()), held));
  }
  return buffers;
}

TEST(BoundProgram, OutputsThatAreThereAlreadyAreNotCopied) {
  HiddenMemoryBackend backend;
  {
    const CompiledProgramPtr program = CompileText(kOddOutputs, &backend);
    const int64_t constants = backend.live_buffers();
    const std::vector<Literal> literals =
        Arguments({{.dtype = DType::kF32, .shape = {2, 6}}, {.dtype = DType::kF32, .shape = {}}});
    std::vector<BufferPtr> buffers = Import(&backend, literals);
    const auto bound = program->Bind({literals[0].type(), literals[1].type()});
    ASSERT_TRUE(bound.ok()) << bound.status();
    auto results = (*bound)->Run(buffers);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(backend.live_buffers(), constants + 2 + 1);  // %a is all that is new
    std::vector<const void*> addresses;
    for (const BufferPtr& result : *results) addresses.push_back(result->address());
    // A constant in another shape is a constant of its own.
    const void *const x = buffers[0]->address(), *const s = buffers[1]->address(), *const k = addresses[3],
                      *const reshaped = addresses[7], *const a = addresses[8];
    EXPECT_THAT(addresses, testing::ElementsAre(x, x, s, k, k, x, x, reshaped, a, a, a));
    // Results keep what they share.
    buffers.clear();
    EXPECT_EQ(backend.live_buffers(), constants + 2 + 1);
    results->clear();
    EXPECT_EQ(backend.live_buffers(), constants);
  }
  EXPECT_EQ(backend.live_buffers(), 0);
}

TEST(BoundProgram, ContiguousPartsAreViewsOfWhatTheyArePartsOf) {
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : f32[4,6]
    %a = exp(%x)
    %tail = slice(%a) {start_indices = [0, 2], limit_indices = [4, 6]}
    %column = slice(%x) {start_indices = [0, 5], limit_indices = [4, 6]}
    %flat = reshape(%column) {shape = [4]}
    %unit = broadcast_in_dim(%flat) {shape = [1, 4, 1], broadcast_dimensions = [1]}
    %turned = transpose(%unit) {permutation = [1, 2, 0]}
    %few = slice(%turned) {start_indices = [1, 0, 0], limit_indices = [3, 1, 1]}
    output "tail" = %tail
    output "few" = %few
  })";
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(kText, &backend, false);
  ASSERT_NE(program, nullptr);
  const std::vector<Literal> literals = Arguments({{.dtype = DType::kF32, .shape = {4, 6}}});
  ExpectAsReference(*program, kText, literals);
  const std::vector<BufferPtr> buffers = Import(&backend, literals);
  const auto bound = program->Bind({literals[0].type()});
  ASSERT_TRUE(bound.ok()) << bound.status();
  const auto results = (*bound)->Run(buffers);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0]->size_bytes(), 64);
  EXPECT_EQ((*results)[1]->size_bytes(), 8);
  EXPECT_EQ((*results)[1]->address(), static_cast<const char*>(buffers[0]->address()) + 4 * (4 * 5 + 1));
}

TEST(BoundProgram, PeakCountsArgumentsResultsAndTemporaries) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(R"(graph "g" {
    %x = input : f32[100]
    %r = reverse(%x) {dimensions = [0]}
    %y = concatenate(%r, %x) {dimension = 0}
    output "y" = %y
  })",
                                                 &backend);
  const auto bound = program->Bind(std::vector<ConcreteType>{{.dtype = DType::kF32, .shape = {100}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ((*bound)->temporary_bytes(), 448 + 64);  // %r and the second kernel's scratch; the first's is in the result
  EXPECT_EQ((*bound)->peak_bytes((*bound)->plan()), 400 + 800 + 448 + 64);
  EXPECT_EQ(program->temporary_bytes(), 448 + 64);
}

TEST(BoundProgram, EmptyTensorsAndNoInstructions) {
  HiddenMemoryBackend backend;
  for (absl::string_view text : {R"(graph "g" {
    %x = input : f32[0,3]
    %y = exp(%x)
    %z = transpose(%y) {permutation = [1, 0]}
    %s = reduce(%z) {kind = sum, dimensions = [1]}
    output "z" = %z
    output "s" = %s
  })",
                                 R"(graph "none" {
    %x = input : f32[0,3]
    output "x" = %x
  })",
                                 R"(graph "no outputs" {
    %x = input : f32[0,3]
    %y = exp(%x)
  })"}) {
    const CompiledProgramPtr program = CompileText(text, &backend);
    ASSERT_NE(program, nullptr);
    ExpectAsReference(*program, text, Arguments({{.dtype = DType::kF32, .shape = {0, 3}}}));
  }
}

struct Refused {
  absl::string_view text;
  std::vector<ConcreteType> good;
  std::vector<ConcreteType> bad;
  std::string reason;
  std::string node;
  std::vector<std::string> parts;  // of the message
};

TEST(BoundProgram, GuardsNameTheNodeAndTheSizes) {
  const auto f32 = [](Shape shape) { return ConcreteType{.dtype = DType::kF32, .shape = std::move(shape)}; };
  const std::vector<Refused> cases = {
      {R"(graph "g" {
         %x = input : f32[n,m]
         %flat = reshape(%x) {shape = [n + m]}
         output "y" = %flat
       })",
       {f32({2, 2})},
       {f32({2, 3})},
       "SHAPE_MISMATCH",
       "flat",
       {"m*n = 6", "n + m = 5", "node \"flat\", op reshape"}},
      {R"(graph "g" {
         %x = input : f32[n]
         %z = input : f32[m]
         %sum = add(%x, %z)
         output "y" = %sum
       })",
       {f32({4}), f32({4})},
       {f32({4}), f32({1})},
       "SHAPE_MISMATCH",
       "sum",
       {"n = 4", "m = 1", "op add"}},
      {R"(graph "g" {
         %x = input : f32[n]
         %z = input : f32[m]
         %b = broadcast_in_dim(%x) {shape = [m], broadcast_dimensions = [0]}
         %sum = add(%b, %z)
         output "y" = %sum
       })",
       {f32({1}), f32({7})},
       {f32({3}), f32({7})},
       "SHAPE_MISMATCH",
       "b",
       {"n = 3", "m = 7", "op broadcast_in_dim"}},
      {R"(graph "g" {
         %x = input : f32[n]
         %head = slice(%x) {start_indices = [0], limit_indices = [5]}
         output "y" = %head
       })",
       {f32({5})},
       {f32({4})},
       "SHAPE_MISMATCH",
       "head",
       {"5", "n = 4", "op slice"}},
      {R"(graph "g" {
         %x = input : f32[n]
         %short = broadcast_in_dim(%x) {shape = [n - 3, n], broadcast_dimensions = [1]}
         output "y" = %short
       })",
       {f32({3})},
       {f32({2})},
       "",
       "short",
       {"-1"}},
      {R"(graph "g" {
         %x = input : f32[n]
         %huge = broadcast_in_dim(%x) {shape = [n*n*n, n], broadcast_dimensions = [1]}
         %y = reduce(%huge) {kind = sum, dimensions = [0]}
         output "y" = %y
       })",
       {f32({3})},
       {f32({3000000})},
       "",
       "huge",
       {"overflow"}},
      // The guard of a node that nobody reads holds all the same.
      {R"(graph "g" {
         %x = input : f32[n]
         %z = input : f32[m]
         %dead = add(%x, %z)
         output "y" = %x
       })",
       {f32({2}), f32({2})},
       {f32({2}), f32({3})},
       "SHAPE_MISMATCH",
       "dead",
       {"n = 2", "m = 3"}},
      {R"(graph "g" {
         %x = input : f32[n,n]
         output "y" = %x
       })",
       {f32({2, 2})},
       {f32({2, 3})},
       "SYMBOL_CONFLICT",
       "",
       {"\"n\"", "3", "2"}},
      {R"(graph "g" {
         %x = input : f32[n,3]
         output "y" = %x
       })",
       {f32({2, 3})},
       {f32({2, 4})},
       "ARGUMENT_MISMATCH",
       "",
       {"f32[2,4]", "f32[n,3]"}},
      {R"(graph "g" {
         %x = input : f32[n]
         output "y" = %x
       })",
       {f32({2})},
       {},
       "ARGUMENT_COUNT",
       "",
       {"1 inputs", "0 arguments"}},
  };
  HiddenMemoryBackend backend;
  for (const Refused& c : cases) {
    SCOPED_TRACE(c.text);
    const CompiledProgramPtr program = CompileText(c.text, &backend);
    ASSERT_NE(program, nullptr);
    const auto good = RunCompiled(*program, Arguments(c.good));
    EXPECT_TRUE(good.ok()) << good.status();
    const auto bad = program->Bind(c.bad);
    ASSERT_FALSE(bad.ok());
    const RefusalDetail detail = DetailOf(bad.status()).value_or(RefusalDetail{});
    if (!c.reason.empty()) {
      EXPECT_EQ(detail.reason, c.reason);
    }
    EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument) << bad.status();
    EXPECT_EQ(detail.node, c.node) << bad.status();
    for (const std::string& part : c.parts) EXPECT_THAT(std::string(bad.status().message()), HasSubstr(part));
  }
}

TEST(BoundProgram, OneCompilationServesFiftySizes) {
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : f32[n,m]
    %w = input : f32[m,k]
    %p = dot_general(%x, %w) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
    %b = broadcast_in_dim(%one, %x) {shape = [dim(1, 0), k], broadcast_dimensions = []}
    %q = add(%p, %b)
    %t = transpose(%q) {permutation = [1, 0]}
    %f = reshape(%t) {shape = [k*n], order = row_major}
    output "f" = %f
    output "q" = %q
  })";
  std::string text(kText);
  text.insert(text.find("    %p ="), "    %one = constant() {value = f32[] [1]}\n");
  for (bool row_major : {false, true}) {
    HiddenMemoryBackend backend;
    const CompiledProgramPtr program = CompileText(text, &backend, row_major);
    ASSERT_NE(program, nullptr);
    EXPECT_FALSE(program->program().is_static());
    EXPECT_FALSE(program->temporary_bytes().has_value());
    for (int64_t i = 0; i < 55; ++i) {
      const int64_t n = i % 50, m = i % 7, k = 1 + i % 5;  // the first sizes again, when others took their place
      ExpectAsReference(*program, text,
                        Arguments({{.dtype = DType::kF32, .shape = {n, m}}, {.dtype = DType::kF32, .shape = {m, k}}}));
    }
  }
}

TEST(BoundProgram, ABindingIsKeptWhileItIsUsed) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(R"(graph "g" {
    %x = input : f32[n]
    %y = exp(%x)
    output "y" = %y
  })",
                                                 &backend);
  const auto bind = [&program](int64_t n) {
    return *program->Bind(std::vector<ConcreteType>{{.dtype = DType::kF32, .shape = {n}}});
  };
  const std::shared_ptr<const BoundProgram> often = bind(1), once = bind(2);
  for (int64_t n = 3; n < 3 + BindingOptions().max_sets; ++n) {
    bind(n);
    EXPECT_EQ(bind(1), often);
  }
  EXPECT_NE(bind(2), once);
}

TEST(BoundProgram, ACheckThatRefusesEndsTheRunBetweenKernels) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(R"(graph "g" {
    %x = input : f32[4]
    %a = exp(%x)
    %b = negate(%a)
    %c = floor(%b)
    output "y" = %c
  })",
                                                 &backend);
  ASSERT_NE(program, nullptr);
  const auto bound = program->Bind({{.dtype = DType::kF32, .shape = {4}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  const auto x = backend.Allocate(16);
  ASSERT_TRUE(x.ok()) << x.status();
  int asked = 0;
  const auto run = [&](int last) {
    asked = 0;
    return (*bound)
        ->Run({BufferPtr(*x)},
              [&asked, last] { return ++asked > last ? Refuse(Refusal::kCancelled, "cancelled") : absl::OkStatus(); })
        .status();
  };
  EXPECT_EQ(run(2).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(run(3).ok());
  EXPECT_EQ(asked, 3);
}

std::string BytesOf(Backend* backend, const BufferPtr& buffer) {
  const auto bytes = backend->Export(buffer);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return std::string(static_cast<const char*>(bytes->get()), static_cast<size_t>(buffer->size_bytes()));
}

std::vector<ConcreteType> ArgumentTypes(const CompiledProgram& program) {
  std::vector<ConcreteType> types;
  for (size_t i = 0; i < program.program().inputs.size(); ++i) {
    types.push_back(ToConcreteType(program.program().slot_types[i]));
  }
  return types;
}

CompiledProgramPtr CompileGraph(Graph graph, Backend* backend, std::vector<std::string> disabled_passes = {}) {
  auto program =
      Compile(std::move(graph), {.device = "test:0", .disabled_passes = disabled_passes}, Fingerprint(), backend);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : nullptr;
}

// The results are the same whichever arguments are donated, and those that are not keep their bytes.
TEST(BoundProgram, OnlyDonatedArgumentsAreWrittenOver) {
  for (const Graph& graph : {AdamWGraph(64), KvCacheStepGraph(4, 8, 2), EmbeddingGraph(3, 5, 4)}) {
    SCOPED_TRACE(graph.name());
    HiddenMemoryBackend backend;
    const CompiledProgramPtr program = CompileGraph(graph, &backend);
    const std::vector<ConcreteType> types = ArgumentTypes(*program);
    const std::vector<Literal> literals = Arguments(types);
    const auto bound = program->Bind(types);
    ASSERT_TRUE(bound.ok()) << bound.status();
    std::vector<std::string> want;
    const auto undonated = (*bound)->Run(Import(&backend, literals));
    ASSERT_TRUE(undonated.ok()) << undonated.status();
    for (const BufferPtr& result : *undonated) want.push_back(BytesOf(&backend, result));
    bool overwrote = false;
    for (uint32_t mask = 0; mask < 1u << types.size(); ++mask) {
      absl::InlinedVector<bool, 16> donated;
      for (size_t i = 0; i < types.size(); ++i) donated.push_back((mask >> i & 1) != 0);
      const auto plan = (*bound)->PlanFor(donated);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const std::vector<BufferPtr> buffers = Import(&backend, literals);
      const auto results = (*bound)->Run(buffers, nullptr, {}, plan->get());
      ASSERT_TRUE(results.ok()) << results.status();
      for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(BytesOf(&backend, (*results)[i]), want[i]) << i;
      for (size_t i = 0; i < types.size(); ++i) {
        const bool is_changed = BytesOf(&backend, buffers[i]) != literals[i].bytes();
        EXPECT_TRUE(donated[i] || !is_changed) << "argument " << i << " of mask " << mask;
        overwrote = overwrote || is_changed;
      }
    }
    EXPECT_TRUE(overwrote);
  }
}

TEST(BoundProgram, AnOptimizerStepOnDonatedArgumentsNeedsNoNewMemory) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileGraph(AdamWGraph(1 << 12), &backend);
  const std::vector<ConcreteType> types = ArgumentTypes(*program);
  const auto bound = program->Bind(types);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const auto plan = (*bound)->PlanFor(absl::InlinedVector<bool, 16>(types.size(), true));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT((*plan)->result_bytes, testing::IsEmpty());
  EXPECT_LE((*plan)->peak_bytes, (*bound)->peak_bytes((*bound)->plan()) - 2 * (4 << 12));
  const std::vector<BufferPtr> buffers = Import(&backend, Arguments(types));
  const auto results = (*bound)->Run(buffers, nullptr, {}, plan->get());
  ASSERT_TRUE(results.ok()) << results.status();
  std::vector<const void*> arguments;
  for (const BufferPtr& buffer : buffers) arguments.push_back(buffer->address());
  for (const BufferPtr& result : *results) EXPECT_THAT(arguments, testing::Contains(result->address()));
}

// Buffers for the outputs that the mask has, and null for the others.
std::vector<BufferPtr> DestinationsOf(Backend* backend, const BoundProgram& bound, const ExecProgram& program,
                                      absl::Span<const bool> mask) {
  std::vector<BufferPtr> buffers;
  for (size_t i = 0; i < mask.size(); ++i) {
    const size_t slot = static_cast<size_t>(program.outputs[i].slot);
    buffers.push_back(mask[i] ? *backend->Allocate(bound.slot_types()[slot].num_bytes()) : nullptr);
  }
  return buffers;
}

// The results are the same wherever they are to go, also where arguments could be used up for them.
TEST(BoundProgram, ResultsAreComputedIntoTheirDestinations) {
  for (const Graph& graph : {AdamWGraph(64), SoftmaxGraph(8, 3), KvCacheStepGraph(4, 8, 2)}) {
    SCOPED_TRACE(graph.name());
    HiddenMemoryBackend backend;
    const CompiledProgramPtr program = CompileGraph(graph, &backend);
    const std::vector<ConcreteType> types = ArgumentTypes(*program);
    const std::vector<Literal> literals = Arguments(types);
    const auto bound = program->Bind(types);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const auto elsewhere = (*bound)->Run(Import(&backend, literals));
    ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
    size_t there = 0;
    for (uint32_t mask = 0; mask < 1u << elsewhere->size(); ++mask) {
      absl::InlinedVector<bool, 4> wanted;
      for (size_t i = 0; i < elsewhere->size(); ++i) wanted.push_back((mask >> i & 1) != 0);
      for (const bool donates : {false, true}) {
        const auto plan = (*bound)->PlanFor(absl::InlinedVector<bool, 16>(types.size(), donates), wanted);
        ASSERT_TRUE(plan.ok()) << plan.status();
        const std::vector<BufferPtr> destinations =
            DestinationsOf(&backend, **bound, program->program(), absl::MakeConstSpan(wanted));
        const auto results = (*bound)->Run(Import(&backend, literals), nullptr, {}, plan->get(), destinations);
        ASSERT_TRUE(results.ok()) << results.status();
        for (size_t i = 0; i < results->size(); ++i) {
          EXPECT_EQ(BytesOf(&backend, (*results)[i]), BytesOf(&backend, (*elsewhere)[i])) << i << " of mask " << mask;
          there += wanted[i] && (*results)[i]->address() == destinations[i]->address() ? 1 : 0;
        }
      }
    }
    EXPECT_GT(there, 0u);
  }
}

TEST(BoundProgram, ADestinationIsLeftAloneWhereItWouldTakeMoreOfTheDevice) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(R"(graph "g" {
    %x = input : f32[64]
    %z = constant() {value = f32[] [0]}
    %a = concatenate(%x, %x) {dimension = 0}
    %b = concatenate(%a, %a) {dimension = 0}
    %c = reverse(%b) {dimensions = [0]}
    %d = pad(%c, %z) {edge_padding_low = [0], edge_padding_high = [32]}
    %y = reverse(%d) {dimensions = [0]}
    output "y" = %y
  })",
                                                 &backend);
  ASSERT_NE(program, nullptr);
  const auto bound = program->Bind({{.dtype = DType::kF32, .shape = {64}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  for (int time = 0; time < 2; ++time) {
    const auto plan = (*bound)->PlanFor({}, {true});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->get(), &(*bound)->plan());
  }
}

TEST(BoundProgram, PlansForDonationsAreKeptWhileTheyAreUsed) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileGraph(AdamWGraph(64), &backend);
  const auto bound = program->Bind(ArgumentTypes(*program));
  ASSERT_TRUE(bound.ok()) << bound.status();
  const auto plan = [&](int donated) {
    absl::InlinedVector<bool, 16> mask(5, false);
    if (donated >= 0) mask[static_cast<size_t>(donated)] = true;
    return *(*bound)->PlanFor(mask);
  };
  EXPECT_EQ(plan(-1).get(), &(*bound)->plan());
  const std::shared_ptr<const BufferPlan> often = plan(0), once = plan(1);
  for (int i = 2; i < 5; ++i) {
    plan(i);
    EXPECT_EQ(plan(0), often);
  }
  EXPECT_NE(plan(1), once);
  const std::vector<std::shared_ptr<const BufferPlan>> plans = {
      *(*bound)->PlanFor({}, {true, false, false}), *(*bound)->PlanFor({}, {false, true, false}),
      *(*bound)->PlanFor({false, true, false, false, false}, {false, true, false})};
  EXPECT_NE(plans[0], plans[1]);
  EXPECT_NE(plans[1], plans[2]);
  EXPECT_EQ(*(*bound)->PlanFor({}, {true, false, false}), plans[0]);
  EXPECT_EQ(*(*bound)->PlanFor({}, {false, true, false}), plans[1]);
  EXPECT_EQ((*bound)->PlanFor({}, {false, false, false})->get(), &(*bound)->plan());
}

// A chain, and many results that live together.
std::string LongProgram(int length) {
  std::string text = "graph \"g\" {\n  %x = input : f32[n,n]\n  %v0 = exp(%x)\n";
  std::string last = "x";
  const auto multiply = [&](absl::string_view result, absl::string_view lhs, absl::string_view rhs) {
    absl::StrAppend(&text, "  %", result, " = dot_general(%", lhs, ", %", rhs,
                    ") {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}\n");
  };
  for (int i = 1; i <= length; ++i) multiply(absl::StrCat("v", i), absl::StrCat("v", i - 1), "x");
  for (int i = 1; i <= length; ++i) {
    multiply(absl::StrCat("s", i), last, absl::StrCat("v", i));
    last = absl::StrCat("s", i);
  }
  return absl::StrCat(text, "  output \"y\" = %", last, "\n}");
}

// Asked whenever a loop asks, refuses from the last time on.
struct CountingCheck {
  StopSignal::Check Refusing(int last) {
    asked = 0;
    return [this, last] { return ++asked > last ? Refuse(Refusal::kCancelled, "cancelled") : absl::OkStatus(); };
  }
  int asked = 0;
};

constexpr int kMost = std::numeric_limits<int>::max();

TEST(BoundProgram, ABindingIsBrokenOffAtAnyPieceOfIt) {
  constexpr int kLength = 40;
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(LongProgram(kLength), &backend);
  ASSERT_NE(program, nullptr);
  const auto sizes = BindSizes(program->program(), {{.dtype = DType::kF32, .shape = {8, 8}}});
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  CountingCheck counted;
  const auto bind = [&](int last) {
    const StopSignal::Check check = counted.Refusing(last);
    StopSignal stop(check, std::chrono::nanoseconds(0));
    const StopSignal::Scope scope(&stop);
    return BoundProgram::Create(program->program(), &backend, *sizes).status();
  };
  ASSERT_TRUE(bind(kMost).ok());
  const int all = counted.asked;
  // Sizes, views, instructions, operations, the plan of memory and where each lies in it.
  EXPECT_GE(all, 6 * static_cast<int>(program->program().instructions.size()));
  for (int last = 0; last < all; ++last) {
    EXPECT_EQ(bind(last).code(), absl::StatusCode::kCancelled) << last;
    EXPECT_EQ(counted.asked, last + 1);
  }
}

TEST(BoundProgram, APlanForDonationsIsBrokenOffAtAnyPieceOfIt) {
  constexpr int kLength = 40;
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(LongProgram(kLength), &backend);
  ASSERT_NE(program, nullptr);
  const auto bound = program->Bind({{.dtype = DType::kF32, .shape = {8, 8}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  CountingCheck counted;
  const auto plan = [&](int last) {
    const StopSignal::Check check = counted.Refusing(last);
    StopSignal stop(check, std::chrono::nanoseconds(0));
    const StopSignal::Scope scope(&stop);
    return (*bound)->PlanFor({true}).status();
  };
  const int64_t held = (*bound)->held_bytes();
  int last = 0;
  while (plan(last).code() == absl::StatusCode::kCancelled) {
    EXPECT_EQ((*bound)->held_bytes(), held) << "what was broken off is not kept";
    ++last;
  }
  EXPECT_GE(last, 2 * static_cast<int>(program->program().instructions.size()));
  EXPECT_TRUE(plan(kMost).ok());
}

// On a thread of its own, which asks soon and not only after a while.
absl::Status OnItsOwnThread(const std::function<absl::Status()>& work) {
  absl::Status status;
  std::thread([&] { status = work(); }).join();
  return status;
}

TEST(BoundProgram, WhoIsNotWantedAnyMoreBindsNothing) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(LongProgram(10), &backend);
  ASSERT_NE(program, nullptr);
  const RunCheck refuse = [] { return Refuse(Refusal::kDeadlineExceeded, "the deadline passed"); };
  const std::vector<ConcreteType> types = {{.dtype = DType::kF32, .shape = {8, 8}}};
  const auto x = backend.Allocate(8 * 8 * 4);
  ASSERT_TRUE(x.ok()) << x.status();
  const std::vector<BufferPtr> arguments = {*x};
  EXPECT_EQ(OnItsOwnThread([&] { return program->Bind(types, refuse).status(); }).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(OnItsOwnThread([&] { return program->PeakBytes(types, refuse).status(); }).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(program->size_bytes(), CompileText(LongProgram(10), &backend)->size_bytes()) << "nothing is kept";
  const auto bound = program->Bind(types);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(OnItsOwnThread([&] { return (*bound)->PlanFor({true}, {}, refuse).status(); }).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE((*bound)->PlanFor({true}).ok());
}

// A device that is made anew may let the one who imports them wait long.
TEST(BoundProgram, WhoWaitsForLostConstantsMayGiveUp) {
  GatedBackend backend;
  const auto loss = std::make_shared<std::atomic<bool>>(false);
  backend.loss = loss;
  const CompiledProgramPtr program = CompileText(R"(graph "g" {
    %k = constant() {value = f32[3] [1, 2, 3]}
    output "k" = %k
  })",
                                                 &backend);
  ASSERT_NE(program, nullptr);
  const auto bound = program->Bind({});
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_TRUE((*bound)->Run({}).ok());
  *loss = true;
  backend.loss = nullptr;
  Event begun, go;
  std::atomic<int> imports{0};
  backend.before_import = [&] {
    ++imports;
    begun.Set();
    go.Wait();
  };
  std::future<absl::Status> importer = std::async(std::launch::async, [&] { return (*bound)->Run({}).status(); });
  begun.Wait();
  std::future<absl::Status> waiting = std::async(std::launch::async, [&] {
    const RunCheck refuse = [] { return Refuse(Refusal::kDeadlineExceeded, "the deadline passed"); };
    StopSignal stop(refuse);
    const StopSignal::Scope scope(&stop);
    return (*bound)->Run({}).status();
  });
  std::future<absl::Status> patient = std::async(std::launch::async, [&] { return (*bound)->Run({}).status(); });
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "it waits for the importer";
  go.Set();
  EXPECT_EQ(waiting.get().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(importer.get().ok());
  EXPECT_TRUE(patient.get().ok());
  EXPECT_EQ(imports, 1);
}

TEST(BoundProgram, WithoutLastUsesNothingIsReused) {
  HiddenMemoryBackend backend;
  for (const Graph& graph : {AdamWGraph(64), KvCacheStepGraph(4, 8, 2), SoftmaxGraph(8, 3)}) {
    SCOPED_TRACE(graph.name());
    const CompiledProgramPtr program = CompileGraph(graph, &backend, {"mark_last_uses"});
    const std::vector<ConcreteType> types = ArgumentTypes(*program);
    const std::vector<Literal> literals = Arguments(types);
    const auto bound = program->Bind(types);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const absl::InlinedVector<bool, 16> donated(types.size(), true);
    EXPECT_EQ((*bound)->PlanFor(donated)->get(), &(*bound)->plan());
    std::vector<SlotHome> seen;  // of what is computed
    for (const int32_t i : (*bound)->segments()) {
      const SlotHome& home = (*bound)->plan().homes[static_cast<size_t>(
          program->program().instructions[static_cast<size_t>(i)].results[0])];
      EXPECT_THAT(seen, testing::Not(testing::Contains(home)));
      EXPECT_NE(home.kind, SlotHome::Kind::kArgument);
      seen.push_back(home);
    }
    const CompiledProgramPtr usual = CompileGraph(graph, &backend);
    EXPECT_EQ(*RunCompiled(*program, literals, 0, donated), *RunCompiled(*usual, literals));
  }
}

}  // namespace
}  // namespace tensord
