#include "engine/exec/buffer_plan.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compiler.h"
#include "engine/runtime/explain.h"
#include "gtest/gtest.h"
#include "tests/testlib/hidden_memory_backend.h"
#include "tests/testlib/valid_graph.h"

namespace tensord {
namespace {

constexpr int64_t kScratch = 100;

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

// Runs a program on bytes that remember which slot wrote them. What an instruction or an output reads must be what was
// written for it, so memory that two live values share shows.
class PlanSimulation {
 public:
  PlanSimulation(const ExecProgram& program, const std::vector<ConcreteType>& types, const BufferPlan& plan)
      : program_(program), types_(types), plan_(plan), value_(types.size(), -1) {}

  // Empty, or the first rule that is broken.
  std::string Check() {
    Prepare();
    for (const ExecInstruction& instruction : program_.instructions) {
      Step(instruction);
      if (!error_.empty()) return absl::StrCat("at ", instruction.node, ": ", error_);
      ++now_;
    }
    for (const OutputCopy& copy : plan_.copies) {
      ExpectHolds(copy.from);
      std::vector<int32_t>& result = SpaceOf({SlotHome::Kind::kResult, copy.output});
      std::fill(result.begin(), result.end(), value_[At(copy.from)]);
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Slot slot = program_.outputs[i].slot;
      for (int32_t tag : SpaceOf({SlotHome::Kind::kResult, static_cast<int64_t>(i)})) {
        if (tag != value_[At(slot)]) Fail(absl::StrCat("result ", i, " holds another value"));
      }
    }
    return error_;
  }

  // Bytes that any plan with this sharing needs in the arena at once.
  int64_t LargestLiveSet() const {
    int64_t largest = 0;
    for (int32_t at = 0; at < now_; ++at) {
      int64_t live = 0;
      for (const auto& [value, life] : lives_) {
        if (life.birth <= at && at <= life.death) live += life.bytes;
      }
      largest = std::max(largest, live);
    }
    return largest;
  }

 private:
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

  // The bytes of one argument, constant or result; all temporaries are in one space.
  std::vector<int32_t>& SpaceOf(const SlotHome& home) {
    return spaces_[{home.kind, home.kind == SlotHome::Kind::kArena ? 0 : home.position}];
  }

  void Prepare() {
    SpaceOf({SlotHome::Kind::kArena, 0}).resize(static_cast<size_t>(plan_.arena_bytes), -1);
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      SpaceOf({SlotHome::Kind::kResult, static_cast<int64_t>(i)})
          .resize(static_cast<size_t>(BytesOf(program_.outputs[i].slot)), -1);
    }
    const auto leaf = [this](Slot slot, SlotHome::Kind kind, size_t position) {
      if (HomeOf(slot).kind != kind || HomeOf(slot).position != static_cast<int64_t>(position)) {
        Fail(absl::StrCat("the home of leaf %", slot, " is not its own"));
      }
      value_[At(slot)] = slot;
      SpaceOf(HomeOf(slot)).resize(static_cast<size_t>(BytesOf(slot)), slot);
    };
    for (size_t i = 0; i < program_.inputs.size(); ++i) leaf(static_cast<Slot>(i), SlotHome::Kind::kArgument, i);
    for (size_t i = 0; i < program_.constants.size(); ++i) {
      leaf(program_.constants[i].slot, SlotHome::Kind::kConstant, i);
    }
    if (plan_.scratch_offset % kBufferAlignment != 0 || plan_.scratch_offset + kScratch > plan_.arena_bytes) {
      Fail("scratch is not aligned, or not inside the arena");
    }
  }

  // First byte in its space, and one past the last.
  std::pair<int64_t, int64_t> RangeOf(Slot slot) const {
    const int64_t begin = HomeOf(slot).kind == SlotHome::Kind::kArena ? HomeOf(slot).position : 0;
    return {begin, begin + BytesOf(slot)};
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

  void Step(const ExecInstruction& instruction) {
    const Slot result = instruction.results[0];
    for (Slot operand : instruction.operands) {
      ExpectHolds(operand);
      if (lives_.contains(owner_[operand])) lives_[owner_[operand]].death = now_;
    }
    if (!error_.empty()) return;
    if (IsAlias(instruction)) {
      const Slot operand = instruction.operands[0];
      if (HomeOf(result).kind != HomeOf(operand).kind || HomeOf(result).position != HomeOf(operand).position) {
        return Fail("a second name lies elsewhere");
      }
      value_[At(result)] = value_[At(operand)];
      owner_[result] = owner_[operand];
      return;
    }
    const SlotHome& home = HomeOf(result);
    if (home.kind != SlotHome::Kind::kArena && home.kind != SlotHome::Kind::kResult) return Fail("writes to a leaf");
    if (home.kind == SlotHome::Kind::kArena &&
        (home.position % kBufferAlignment != 0 || RangeOf(result).second > plan_.scratch_offset)) {
      return Fail("a temporary is not aligned, or reaches into the scratch");
    }
    owner_[result] = result;
    for (Slot operand : instruction.operands) {
      if (!Overlap(result, operand)) continue;
      if (!instruction.op->has(kElementwise) || RangeOf(result) != RangeOf(operand)) {
        return Fail(absl::StrCat("writes over %", operand, ", which it reads"));
      }
      owner_[result] = owner_[operand];
    }
    value_[At(result)] = result;
    const auto [begin, end] = RangeOf(result);
    std::vector<int32_t>& space = SpaceOf(home);
    if (end > static_cast<int64_t>(space.size())) return Fail("the result does not fit");
    std::fill(space.begin() + begin, space.begin() + end, result);
    if (home.kind != SlotHome::Kind::kArena) return;
    const int64_t bytes = std::max(Aligned(end - begin), kBufferAlignment);
    lives_.try_emplace(owner_[result], Life{.bytes = bytes, .birth = now_}).first->second.death = now_;
  }

  const ExecProgram& program_;
  const std::vector<ConcreteType>& types_;
  const BufferPlan& plan_;
  std::vector<int32_t> value_;  // by slot: the tag of its bytes
  std::map<std::pair<SlotHome::Kind, int64_t>, std::vector<int32_t>> spaces_;
  std::map<Slot, Slot> owner_;  // the slot whose memory this one goes on using
  std::map<Slot, Life> lives_;  // of temporaries, by owner
  int32_t now_ = 0;
  std::string error_;
};

// Arena without scratch over the largest live set; 1 where nothing is temporary.
double CheckedRatio(const CompiledProgram& program, int64_t symbol) {
  const std::vector<ConcreteType> arguments = ArgumentsOf(program.program(), symbol);
  const auto bound = program.Bind(arguments);
  if (!bound.ok()) {
    ADD_FAILURE() << bound.status();
    return 1;
  }
  const std::vector<ConcreteType>& types = (*bound)->slot_types();
  const auto plan = PlanBuffers(program.program(), types, kScratch);
  if (!plan.ok()) {
    ADD_FAILURE() << plan.status();
    return 1;
  }
  PlanSimulation simulation(program.program(), types, *plan);
  const std::string error = simulation.Check();
  EXPECT_EQ(error, "") << ToString(program.program()) << ToString(*plan);
  const int64_t used = plan->arena_bytes - Aligned(kScratch), least = simulation.LargestLiveSet();
  EXPECT_GE(used, least) << ToString(*plan);
  EXPECT_EQ(used, plan->scratch_offset);
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
    const double ratio = CheckedRatio(*program, i % 3 == 0 ? 0 : 3);
    ASSERT_FALSE(HasFailure());
    sum += ratio;
    worst = std::max(worst, ratio);
  }
  std::cout << "arena over the largest live set: mean " << sum / kGraphs << ", worst " << worst << "\n";
  EXPECT_LE(sum / kGraphs, 1.1);
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
    }
    const CompiledProgramPtr program = CompileOn(&backend, Chain(sizes), false);
    ASSERT_NE(program, nullptr);
    EXPECT_LE(CheckedRatio(*program, 1), 1.25);
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
  const auto plan =
      PlanBuffers(program->program(), (*program->Bind(ArgumentsOf(program->program(), 1)))->slot_types(), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 0) << ToString(*plan);
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
  // As many temporaries of 2^56 bytes, the most that a tensor may have, that their sum wraps to a small number.
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
    const auto program = Compile(*std::move(graph), {.device = "test:0"}, Fingerprint(), &backend);
    ASSERT_FALSE(program.ok()) << ExplainProgram(**program);
    EXPECT_EQ(DetailOf(program.status())->reason, "SHAPE_OVERFLOW") << program.status();
    EXPECT_EQ(DetailOf(program.status())->node, "") << "of the whole plan, not of a node";
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
  const auto plan =
      PlanBuffers(program->program(), (*program->Bind(ArgumentsOf(program->program(), 1)))->slot_types(), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ToString(*plan),
            "memory: 64 bytes of temporaries\n  %0: argument 0\n  %1: constant 0\n  %2: temporary at 0\n"
            "  %3: result 0\n  result 1: copy of %0\n");
}

}  // namespace
}  // namespace tensord
