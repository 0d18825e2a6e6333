#include "engine/exec/memory/buffer_plan.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/exec/backend/overwrites.h"
#include "engine/exec/memory/block_placement.h"
#include "engine/exec/program/sessions.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/compile/explain.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/valid_graph.h"
#include "tests/testlib/runs/hidden_memory_backend.h"

namespace tensord {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

CompiledProgramPtr CompileOn(HiddenMemoryBackend* backend, Graph graph, bool row_major,
                             std::vector<std::string> disabled_passes = {}) {
  const CompileSettings settings{.device = "test:0", .row_major = row_major, .disabled_passes = disabled_passes};
  absl::StatusOr<CompiledProgramPtr> program = Compile(std::move(graph), settings, Fingerprint(), backend);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : nullptr;
}

CompiledProgramPtr CompileText(HiddenMemoryBackend* backend, absl::string_view text,
                               std::vector<std::string> disabled_passes = {}) {
  absl::StatusOr<Graph> graph = ParseGraph(text, CoreRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? CompileOn(backend, *std::move(graph), false, std::move(disabled_passes)) : nullptr;
}

// Sizes of the arguments where every symbol is `symbol`.
std::vector<ConcreteType> ArgumentsOf(const ExecProgram& program, int64_t symbol) {
  std::vector<ConcreteType> arguments;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    ConcreteType type{.dtype = program.slot_types[i].dtype};
    for (const Dim& d : program.slot_types[i].shape) {
      type.shape.push_back(d.size.is_constant() ? d.size.constant() : symbol);
    }
    arguments.push_back(std::move(type));
  }
  return arguments;
}

using Donated = absl::InlinedVector<bool, 8>;

// A binding of a program, and what its memory is planned from.
struct Bound {
  const ExecProgram& program;
  std::vector<ConcreteType> types;
  std::vector<std::optional<OperandView>> views;
};

Bound BindTo(const CompiledProgram& program, int64_t symbol) {
  const auto bound = program.Bind(ArgumentsOf(program.program(), symbol));
  EXPECT_TRUE(bound.ok()) << bound.status();
  Bound made = {.program = program.program(), .types = (*bound)->slot_types(), .views = {}};
  made.views = FindViews(made.program, made.types);
  return made;
}

// `has_destinations`: for each output there is one.
absl::StatusOr<BufferPlan> PlanOf(const Bound& bound, const Donated& donated = {},
                                  absl::Span<const int64_t> scratch_bytes = {}, bool has_destinations = false) {
  const Donated destinations(has_destinations ? bound.program.outputs.size() : 0, true);
  return PlanBuffers({.program = bound.program,
                      .slot_types = bound.types,
                      .views = bound.views,
                      .micro_programs = {},
                      .scratch_bytes = scratch_bytes,
                      .donated = donated,
                      .destinations = destinations});
}

// Returns scratch that kernels might ask for, by segment: mostly none.
std::vector<int64_t> SomeScratch(const Bound& bound) {
  constexpr int64_t kBytes[] = {0, 100, 0, 0, 2000, 64, 0, 1};
  std::vector<int64_t> bytes(SegmentsOf(bound.views).size());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = kBytes[i % std::size(kBytes)];
  return bytes;
}

// Runs a program on bytes that remember which slot wrote them. An instruction or an output must read the bytes written
// for it, so memory shared by two live values shows. Scratch is written to before its segment and after. In a
// destination lies its output from the first byte on, and nothing else ever does.
class PlanSimulation {
 public:
  PlanSimulation(const Bound& bound, const Donated& donated, absl::Span<const int64_t> scratch_bytes,
                 const BufferPlan& plan)
      : program_(bound.program),
        types_(bound.types),
        views_(bound.views),
        donated_(donated),
        scratch_bytes_(scratch_bytes),
        plan_(plan),
        value_(bound.types.size(), -1) {}

  // Empty, or the first rule that is broken.
  std::string Check() {
    Prepare();
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const ExecInstruction& instruction = program_.instructions[i];
      Step(instruction, views_[i]);
      if (!error_.empty()) return absl::StrCat("at ", instruction.node, ": ", error_);
      ++now_;
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Slot slot = program_.outputs[i].slot;
      ExpectHolds(slot);
      if (lives_.contains(owner_[slot])) lives_[owner_[slot]].death = now_;
      if (plan_.outputs[i].home != HomeOf(slot) || plan_.outputs[i].bytes != BytesOf(slot) ||
          HomeOf(slot).kind == SlotHome::Kind::kArena) {
        Fail(absl::StrCat("output ", i, " is not its slot, or lies in the arena"));
      }
    }
    return error_;
  }

  // Bytes that any plan with this sharing needs in the arena and in the buffers of results at once.
  int64_t LargestLiveSet() const {
    std::vector<int64_t> change(static_cast<size_t>(now_) + 2);
    for (const auto& [owner, life] : lives_) {
      change[static_cast<size_t>(life.birth)] += life.bytes;
      change[static_cast<size_t>(life.death) + 1] -= life.bytes;
    }
    for (const Life& life : scratch_lives_) {
      change[static_cast<size_t>(life.birth)] += life.bytes;
      change[static_cast<size_t>(life.death) + 1] -= life.bytes;
    }
    int64_t live = 0, largest = 0;
    for (int64_t by : change) largest = std::max(largest, live += by);
    return largest;
  }

 private:
  static constexpr int32_t kScratch = -2;  // what scratch is filled with

  struct Life {
    int64_t bytes = 0;
    int32_t birth = 0;
    int32_t death = 0;
  };

  static size_t At(Slot slot) { return static_cast<size_t>(slot); }
  const SlotHome& HomeOf(Slot slot) const { return plan_.homes[At(slot)]; }
  int64_t BytesOf(Slot slot) const { return types_[At(slot)].num_bytes(); }
  void Fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
  }

  // The bytes of one argument, constant or buffer of results; all temporaries of the arena are in one space.
  std::vector<int32_t>& SpaceOf(const SlotHome& home) { return spaces_[{home.kind, home.index}]; }

  void Prepare() {
    SpaceOf({SlotHome::Kind::kArena, 0}).resize(static_cast<size_t>(plan_.arena_bytes), -1);
    for (size_t i = 0; i < plan_.result_bytes.size(); ++i) {
      SpaceOf({SlotHome::Kind::kResult, static_cast<int32_t>(i)})
          .resize(static_cast<size_t>(plan_.result_bytes[i]), -1);
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      SpaceOf({SlotHome::Kind::kDestination, static_cast<int32_t>(i)})
          .resize(static_cast<size_t>(BytesOf(program_.outputs[i].slot)), -1);
    }
    const auto leaf = [this](Slot slot, SlotHome::Kind kind, size_t position) {
      if (HomeOf(slot) != SlotHome{kind, static_cast<int32_t>(position)}) {
        Fail(absl::StrCat("the home of leaf %", slot, " is not its own"));
      }
      value_[At(slot)] = owner_[slot] = slot;
      SpaceOf(HomeOf(slot)).resize(static_cast<size_t>(BytesOf(slot)), slot);
    };
    for (size_t i = 0; i < program_.inputs.size(); ++i) leaf(static_cast<Slot>(i), SlotHome::Kind::kArgument, i);
    for (size_t i = 0; i < program_.constants.size(); ++i) {
      leaf(program_.constants[i].slot, SlotHome::Kind::kConstant, i);
    }
    if (plan_.scratch.size() != scratch_bytes_.size()) Fail("the scratch is not of every segment");
  }

  bool MayHoldScratch(const SlotHome& home) const {
    return home.kind == SlotHome::Kind::kArena || home.kind == SlotHome::Kind::kResult ||
           (home.kind == SlotHome::Kind::kArgument && !donated_.empty() && donated_[static_cast<size_t>(home.index)]);
  }

  void FillScratch(size_t segment) {
    if (scratch_bytes_.empty() || !error_.empty()) return;
    const SlotHome& home = plan_.scratch[segment];
    int64_t bytes = scratch_bytes_[segment];
    if (bytes == 0 && home.kind != SlotHome::Kind::kNone) return Fail("has scratch and needs none");
    if (bytes == 0) return;
    if (!MayHoldScratch(home)) return Fail("scratch is nowhere, a leaf or a destination");
    if (home.offset % kBufferAlignment != 0) return Fail("scratch is not aligned");
    if (home.kind == SlotHome::Kind::kArgument) bytes += kBufferAlignment - 1;  // to be aligned in there
    std::vector<int32_t>& space = SpaceOf(home);
    if (home.offset + bytes > static_cast<int64_t>(space.size())) return Fail("scratch does not fit");
    std::fill_n(space.begin() + home.offset, bytes, kScratch);
    const bool is_new = scratch_lives_.empty() || scratch_lives_.back().birth < now_;
    if (home.kind != SlotHome::Kind::kArgument && is_new) {
      scratch_lives_.push_back({.bytes = Aligned(bytes), .birth = now_, .death = now_});
    }
  }

  // First byte in its space, and one past the last.
  std::pair<int64_t, int64_t> RangeOf(Slot slot) const {
    return {HomeOf(slot).offset, HomeOf(slot).offset + BytesOf(slot)};
  }

  bool Overlap(Slot a, Slot b) {
    const auto [a_begin, a_end] = RangeOf(a);
    const auto [b_begin, b_end] = RangeOf(b);
    return &SpaceOf(HomeOf(a)) == &SpaceOf(HomeOf(b)) && std::max(a_begin, b_begin) < std::min(a_end, b_end);
  }

  void ExpectHolds(Slot slot) {
    const auto [begin, end] = RangeOf(slot);
    const std::vector<int32_t>& space = SpaceOf(HomeOf(slot));
    if (HomeOf(slot).kind == SlotHome::Kind::kNone || end > static_cast<int64_t>(space.size())) {
      return Fail(absl::StrCat("%", slot, " has no memory of its size"));
    }
    for (int64_t i = begin; i < end; ++i) {
      if (space[static_cast<size_t>(i)] != value_[At(slot)]) {
        return Fail(absl::StrCat("%", slot, " was overwritten by %", space[static_cast<size_t>(i)]));
      }
    }
  }

  void Step(const ExecInstruction& instruction, const std::optional<OperandView>& view) {
    if (!view.has_value()) FillScratch(segment_);
    for (Slot operand : instruction.operands) {
      ExpectHolds(operand);
      if (lives_.contains(owner_[operand])) lives_[owner_[operand]].death = now_;
    }
    if (!error_.empty()) return;
    if (view.has_value()) {
      const Slot result = instruction.results[0], operand = instruction.operands[0];
      SlotHome home = HomeOf(operand);
      home.offset += view->offset_bytes;
      if (HomeOf(result) != home) return Fail("a view lies elsewhere");
      value_[At(result)] = value_[At(operand)];
      owner_[result] = owner_[operand];
      return;
    }
    for (Slot result : instruction.results) Write(instruction, result);
    FillScratch(segment_++);
    for (Slot result : instruction.results) ExpectHolds(result);
  }

  void Write(const ExecInstruction& instruction, Slot result) {
    const SlotHome& home = HomeOf(result);
    const bool has_destination = home.kind == SlotHome::Kind::kDestination;
    if (!has_destination && !MayHoldScratch(home)) return Fail("writes to a leaf");
    if (has_destination &&
        (home.offset != 0 || BytesOf(result) != static_cast<int64_t>(SpaceOf(home).size()) || SpaceOf(home)[0] != -1)) {
      return Fail("a destination holds something else, too");
    }
    if (home.offset % kBufferAlignment != 0) return Fail("a result is not aligned");
    owner_[result] = result;
    const OverwritePairs pairs = MayOverwrite(instruction, nullptr);
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      const Slot operand = instruction.operands[k];
      if (!Overlap(result, operand)) continue;
      const bool may = std::find(pairs.begin(), pairs.end(), std::make_pair(0, static_cast<int32_t>(k))) != pairs.end();
      if (!may || RangeOf(result) != RangeOf(operand)) {
        return Fail(absl::StrCat("writes over %", operand, ", which it reads"));
      }
      owner_[result] = owner_[operand];
    }
    value_[At(result)] = result;
    const auto [begin, end] = RangeOf(result);
    std::vector<int32_t>& space = SpaceOf(home);
    if (end > static_cast<int64_t>(space.size())) return Fail("the result does not fit");
    std::fill(space.begin() + begin, space.begin() + end, result);
    if (has_destination || owner_[result] < static_cast<Slot>(program_.inputs.size()))
      return;  // in the caller's memory
    const int64_t bytes = std::max(Aligned(end - begin), kBufferAlignment);
    lives_.try_emplace(owner_[result], Life{.bytes = bytes, .birth = now_}).first->second.death = now_;
  }

  const ExecProgram& program_;
  const std::vector<ConcreteType>& types_;
  const std::vector<std::optional<OperandView>>& views_;
  const Donated& donated_;
  const absl::Span<const int64_t> scratch_bytes_;
  const BufferPlan& plan_;
  std::vector<int32_t> value_;  // by slot: the tag of its bytes
  std::map<std::pair<SlotHome::Kind, int32_t>, std::vector<int32_t>> spaces_;
  std::map<Slot, Slot> owner_;  // the slot whose memory this one goes on using
  std::map<Slot, Life> lives_;  // of what instructions computed, by owner
  std::vector<Life> scratch_lives_;
  int32_t now_ = 0;
  size_t segment_ = 0;
  std::string error_;
};

// Arena and results over the largest live set; 1 if there is neither.
double CheckedRatio(const CompiledProgram& program, int64_t symbol, const Donated& donated = {},
                    bool has_destinations = false) {
  const Bound bound = BindTo(program, symbol);
  const std::vector<int64_t> scratch = SomeScratch(bound);
  const auto plan = PlanOf(bound, donated, scratch, has_destinations);
  if (!plan.ok()) {
    ADD_FAILURE() << plan.status();
    return 1;
  }
  PlanSimulation simulation(bound, donated, scratch, *plan);
  const std::string error = simulation.Check();
  EXPECT_EQ(error, "") << ToString(program.program()) << ToString(*plan);
  int64_t used = plan->arena_bytes;
  for (int64_t bytes : plan->result_bytes) used += std::max(Aligned(bytes), kBufferAlignment);
  const int64_t least = simulation.LargestLiveSet();
  if (donated.empty()) {
    EXPECT_GE(used, least) << ToString(*plan);
  }
  return least == 0 ? 1 : static_cast<double>(used) / static_cast<double>(least);
}

TEST(BufferPlan, NoLiveValueIsOverwritten) {
  HiddenMemoryBackend backend;
  std::mt19937_64 random(1);
  double sum = 0, worst = 1;
  constexpr int kGraphs = 300;
  for (int i = 0; i < kGraphs; ++i) {
    SCOPED_TRACE(i);
    const ValidGraphOptions options{.max_nodes = 5 + i / 3, .symbols = i % 2 == 0, .exact = i % 3 == 0};
    const Graph graph = RandomValidGraph(options, &random);
    std::vector<std::string> disabled;
    if (i % 5 == 0) disabled = {"eliminate_dead_code", "fold_transposes"};
    const CompiledProgramPtr program = CompileOn(&backend, graph, i % 4 < 2, disabled);
    ASSERT_NE(program, nullptr);
    const int64_t symbol = i % 3 == 0 ? 0 : 3;
    const double ratio = CheckedRatio(*program, symbol);
    Donated donated;
    for (size_t k = 0; k < program->program().inputs.size(); ++k) donated.push_back(random() % 2 == 0);
    CheckedRatio(*program, symbol, donated);
    CheckedRatio(*program, symbol, {}, /*has_destinations=*/true);
    CheckedRatio(*program, symbol, donated, /*has_destinations=*/true);
    ASSERT_FALSE(HasFailure());
    sum += ratio;
    worst = std::max(worst, ratio);
  }
  std::cout << "arena and results over the largest live set: mean " << sum / kGraphs << ", worst " << worst << "\n";
  EXPECT_LE(sum / kGraphs, 1.12);
}

// A chain of ops that cannot write in place, each result as large as `sizes` says.
Graph Chain(const std::vector<int64_t>& sizes) {
  std::string text =
      absl::StrCat("graph \"chain\" {\n  %v0 = input : f32[", sizes[0], "]\n  %z = constant() {value = f32[] [0]}\n");
  for (size_t i = 1; i < sizes.size(); ++i) {
    absl::StrAppend(&text, "  %v", i, " = pad(%v", i - 1, ", %z) {edge_padding_low = [0], edge_padding_high = [",
                    sizes[i] - sizes[i - 1], "]}\n");
  }
  absl::StrAppend(&text, "  %last = reverse(%v", sizes.size() - 1, ") {dimensions = [0]}\n  output \"y\" = %last\n}\n");
  absl::StatusOr<Graph> graph = ParseGraph(text, CoreRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status() << text;
  return graph.ok() ? *std::move(graph) : Graph();
}

TEST(BufferPlan, ChainsNeedLittleMoreThanWhatIsAlive) {
  HiddenMemoryBackend backend;
  std::mt19937_64 random(2);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    std::vector<int64_t> sizes(20);
    for (size_t k = 0; k < sizes.size(); ++k) {
      const int64_t step = static_cast<int64_t>(k) * 50;
      sizes[k] = i % 3 == 0 ? 16 * (1 + static_cast<int64_t>(random() % 100)) : i % 3 == 1 ? 1000 + step : 2000 - step;
      if (i >= 30 && k % 2 == 1) sizes[k] = sizes[k] / 3 + 1;
      sizes[k] *= 8;
    }
    const CompiledProgramPtr program = CompileOn(&backend, Chain(sizes), false);
    ASSERT_NE(program, nullptr);
    EXPECT_LE(CheckedRatio(*program, 1), 1.45);  // the result has a buffer of its own
  }
}

TEST(BufferPlan, LongProgramsArePlannedAsTheyRun) {
  HiddenMemoryBackend backend;
  std::vector<int64_t> sizes(2500);
  for (size_t k = 0; k < sizes.size(); ++k) sizes[k] = 16 * (1 + static_cast<int64_t>(k * 7 % 20));
  const CompiledProgramPtr program = CompileOn(&backend, Chain(sizes), false);
  ASSERT_NE(program, nullptr);
  EXPECT_LE(CheckedRatio(*program, 1), 2);
}

TEST(BufferPlan, AnElementwiseChainLivesInItsResult) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(&backend, R"(graph "g" {
    %x = input : f32[1000]
    %a = exp(%x)
    %b = sin(%a)
    %c = add(%b, %b)
    %d = multiply(%c, %x)
    output "y" = %d
  })");
  const auto plan = PlanOf(BindTo(*program, 1));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 0) << ToString(*plan);
}

TEST(BufferPlan, DestinationsAreForWhatIsComputedAndNoOthers) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(&backend, R"(graph "g" {
    %x = input : f32[16]
    %i = input : i32[16]
    %a = exp(%x)
    %b = sin(%a)
    %c = reshape(%b) {shape = [4, 4]}
    %s = slice(%a) {start_indices = [0], limit_indices = [8]}
    %n = add(%i, %i)
    %m = multiply(%n, %i)
    output "alone" = %c
    output "whole" = %a
    output "part" = %s
    output "argument" = %x
    output "read again" = %n
    output "integers" = %m
  })");
  ASSERT_NE(program, nullptr);
  const auto plan = PlanOf(BindTo(*program, 1), {true, true}, {}, /*has_destinations=*/true);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<bool> there;
  for (const PlannedOutput& output : plan->outputs) {
    there.push_back(output.home.kind == SlotHome::Kind::kDestination);
  }
  EXPECT_EQ(there, (std::vector<bool>{true, false, false, false, false, true})) << ToString(*plan);
}

TEST(BufferPlan, WritesOverNothingThatIsReadAgain) {
  HiddenMemoryBackend backend;
  // %a is read after %b, %c shares its memory by name, and a scalar never gives its memory to a larger result.
  const CompiledProgramPtr program = CompileText(&backend, R"(graph "g" {
    %x = input : f32[16]
    %a = exp(%x)
    %c = reshape(%a) {shape = [4, 4]}
    %b = sin(%a)
    %d = cos(%c)
    %s = reduce(%b) {kind = max, dimensions = [0]}
    %e = clamp(%s, %b, %s)
    output "d" = %d
    output "e" = %e
    output "c" = %c
  })");
  CheckedRatio(*program, 1);
}

TEST(BufferPlan, SizesWhoseSumOverflowsAreRefused) {
  HiddenMemoryBackend backend;
  // So many temporaries of 2^56 bytes, the most that a tensor may have, that their sum wraps to a small number.
  constexpr int kTemporaries = 256;
  for (absl::string_view size : {"18014398509481984", "18014398509481983"}) {
    std::string text = "graph \"g\" {\n";
    for (int i = 0; i < kTemporaries; ++i) {
      absl::StrAppend(&text, "%t", i, " = iota() {type = f32[", size, "], dimension = 0}\n");
      absl::StrAppend(&text, "%r", i, " = reverse(%t", i, ") {dimensions = [0]}\n");
    }
    absl::StrAppend(&text, "%c0 = compare(%r0, %r1) {direction = eq}\n");
    for (int i = 1; i < kTemporaries - 1; ++i) {
      absl::StrAppend(&text, "%p", i, " = compare(%r", i, ", %r", i + 1, ") {direction = eq}\n%c", i, " = and(%c",
                      i - 1, ", %p", i, ")\n");
    }
    absl::StrAppend(&text, "%y = reduce(%c", kTemporaries - 2,
                    ") {kind = max, dimensions = [0]}\noutput \"y\" = %y\n}\n");
    absl::StatusOr<Graph> graph = ParseGraph(text, CoreRegistry());
    ASSERT_TRUE(graph.ok()) << graph.status() << text;
    const CompileSettings settings = {.device = "test:0", .disabled_passes = {"eliminate_common_subexpressions"}};
    const auto program = Compile(*std::move(graph), settings, Fingerprint(), &backend);
    ASSERT_FALSE(program.ok()) << ExplainProgram(**program);
    EXPECT_EQ(DetailOf(program.status())->reason, "SHAPE_OVERFLOW") << program.status();
    EXPECT_EQ(DetailOf(program.status())->node, "") << "of the whole plan, not of a node";
  }
}

constexpr absl::string_view kTwoReverses = R"(graph "g" {
    %x = input : f32[16]
    %k = constant() {value = f32[] [2]}
    %r = reverse(%x) {dimensions = [0]}
    %p = pad(%r, %k) {edge_padding_low = [1000], edge_padding_high = [0]}
    output "p" = %p
  })";

TEST(BufferPlan, ScratchLivesInItsSegmentAlone) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(&backend, kTwoReverses);
  const Bound bound = BindTo(*program, 1);
  // The first segment's fits beside %r into the result that comes later, the second's does not.
  const auto one_after_the_other = PlanOf(bound, {}, {3000, 500});
  ASSERT_TRUE(one_after_the_other.ok()) << one_after_the_other.status();
  EXPECT_EQ(one_after_the_other->scratch[0].kind, SlotHome::Kind::kResult) << ToString(*one_after_the_other);
  EXPECT_EQ(one_after_the_other->scratch[1].kind, SlotHome::Kind::kArena) << ToString(*one_after_the_other);
  EXPECT_EQ(one_after_the_other->arena_bytes, 64 + 512) << ToString(*one_after_the_other);
  // If nothing else is there, both have the same bytes.
  const auto large = PlanOf(bound, {}, {100000, 99968});
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->arena_bytes, 64 + Aligned(100000)) << ToString(*large);
}

TEST(BufferPlan, AChainKeepsWhatItReadsAndHasNoPlaceForWhatPasses) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(&backend, R"(graph "g" {
    %x = input : f32[1000]
    %a = exp(%x)
    %b = sin(%a)
    %c = cos(%b)
    %d = tanh(%c)
    %r = reverse(%d) {dimensions = [0]}
    output "r" = %r
  })");
  const Bound bound = BindTo(*program, 1);
  const auto slot = [&](size_t i) { return static_cast<size_t>(bound.program.instructions[i].results[0]); };
  const std::vector<SegmentChain> chains = {
      {.begin = 1, .end = 4, .unplaced = {static_cast<Slot>(slot(1)), static_cast<Slot>(slot(2))}}};
  const std::vector<int64_t> scratch_bytes = {0, 640, 0, 0, 0};
  const auto plan = PlanBuffers({.program = bound.program,
                                 .slot_types = bound.types,
                                 .views = bound.views,
                                 .micro_programs = {},
                                 .scratch_bytes = scratch_bytes,
                                 .chains = chains});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->homes[slot(1)].kind, SlotHome::Kind::kNone) << ToString(*plan);
  EXPECT_EQ(plan->homes[slot(2)].kind, SlotHome::Kind::kNone) << ToString(*plan);
  // Operands, results and scratch exist at once; the result's memory holds one of them.
  const SlotHome places[] = {plan->homes[slot(0)], plan->homes[slot(3)], plan->scratch[1]};
  const int64_t bytes[] = {4000, 4000, 640};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool is_apart = places[i].kind != places[j].kind || places[i].index != places[j].index ||
                            places[i].offset >= places[j].offset + bytes[j] ||
                            places[j].offset >= places[i].offset + bytes[i];
      EXPECT_TRUE(is_apart) << i << " and " << j << "\n" << ToString(*plan);
    }
  }
  // One after the other they share one place.
  const auto unchained = PlanOf(bound);
  ASSERT_TRUE(unchained.ok()) << unchained.status();
  EXPECT_EQ(unchained->homes[slot(0)], unchained->homes[slot(3)]) << ToString(*unchained);
}

TEST(BufferPlan, ScratchThatOverflowsIsRefused) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(&backend, kTwoReverses);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const Donated& donated : {Donated{}, Donated{true}}) {
    for (const int64_t bytes : {kMost, kMost - 63, kMost - 128}) {
      const auto plan = PlanOf(BindTo(*program, 1), donated, {bytes, 0});
      ASSERT_FALSE(plan.ok()) << ToString(*plan);
      EXPECT_EQ(DetailOf(plan.status())->reason, "SHAPE_OVERFLOW") << plan.status();
    }
  }
}

TEST(BufferPlan, TextNamesEveryHome) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr program = CompileText(&backend, R"(graph "g" {
    %x = input : f32[16]
    %k = constant() {value = f32[] [2]}
    %r = reverse(%x) {dimensions = [0]}
    %p = pad(%r, %k) {edge_padding_low = [1], edge_padding_high = [0]}
    output "p" = %p
    output "x" = %x
  })");
  const auto plan = PlanOf(BindTo(*program, 1));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ToString(*plan),
            "memory: 64 bytes of temporaries, 196 with arguments and results\n  %0: argument 0\n  %1: constant 0\n"
            "  %2: temporary at 0\n  %3: result 0\n  output 0: result 0\n  output 1: argument 0\n");
  const auto with_scratch = PlanOf(BindTo(*program, 1), {}, {0, 10});
  ASSERT_TRUE(with_scratch.ok()) << with_scratch.status();
  EXPECT_EQ(ToString(*with_scratch),
            "memory: 128 bytes of temporaries, 260 with arguments and results\n  %0: argument 0\n  %1: constant 0\n"
            "  %2: temporary at 0\n  %3: result 0\n  scratch of segment 1: temporary at 64\n  output 0: result 0\n"
            "  output 1: argument 0\n");
}

}  // namespace
}  // namespace tensord
