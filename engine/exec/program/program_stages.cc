#include "engine/exec/program/program_stages.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/base/at.h"
#include "engine/exec/program/program_passes.h"
#include "engine/exec/program/sessions.h"

namespace tensord {
namespace {

// DynamicTruncate: the only one so far.
bool DecidesSize(const ExecInstruction& instruction) { return KindOf(instruction) == InstructionKind::kHost; }

class Splitter {
 public:
  explicit Splitter(const ExecProgram& program)
      : program_(program),
        ready_(program.slot_types.size(), 0),
        computed_(program.slot_types.size(), kNowhere),
        last_read_(program.slot_types.size(), kNowhere),
        is_output_(program.slot_types.size()),
        constant_(program.slot_types.size()) {
    for (const ProgramOutput& output : program.outputs) is_output_[At(output.slot)] = true;
    for (const ProgramConstant& constant : program.constants) constant_[At(constant.slot)] = &constant;
  }

  std::vector<ProgramStage> Split() {
    std::vector<std::vector<const ExecInstruction*>> placed(1);
    for (const ExecInstruction& instruction : program_.instructions) {
      const size_t stage = At(Place(instruction));
      if (stage >= placed.size()) placed.resize(stage + 1);
      placed[stage].push_back(&instruction);
    }
    std::vector<ProgramStage> stages(placed.size());
    for (size_t s = 0; s < stages.size(); ++s) Fill(static_cast<int>(s), placed[s], &stages[s]);
    for (const ProgramGuard& guard : program_.guards) AddGuard(guard, &stages);
    return stages;
  }

 private:
  static constexpr int kNowhere = -1;
  int StageOf(const DimExpr& size) const {
    int stage = 0;
    size.ForEachLeaf([&](const DimAtom& atom) {
      const auto it = stage_of_symbol_.find(atom.symbol);
      if (it != stage_of_symbol_.end()) stage = std::max(stage, it->second);
    });
    return stage;
  }

  int StageOf(const TensorType& type) const {
    int stage = 0;
    for (const Dim& dim : type.shape) {
      if (dim.extent != Extent::kExact) stage = std::max(stage, StageOf(dim.size));
    }
    return stage;
  }

  // Places an instruction in a stage, and records the stages that its results and operands need.
  int Place(const ExecInstruction& instruction) {
    int stage = 0;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      const size_t slot = At(instruction.operands[i]);
      // The size must lie in the host's hands before the stage is bound.
      const bool is_size = DecidesSize(instruction) && i == 1;
      stage = std::max(stage, is_size && computed_[slot] != kNowhere ? computed_[slot] + 1 : ready_[slot]);
    }
    if (DecidesSize(instruction)) stage_of_symbol_[instruction.decides] = stage;
    for (Slot slot : instruction.results) stage = std::max(stage, StageOf(program_.slot_types[At(slot)]));
    if (instruction.body != nullptr) {
      for (int32_t v = 0; v < instruction.body->num_values(); ++v) {
        stage = std::max(stage, StageOf(instruction.body->type({v})));
      }
    }
    for (Slot slot : instruction.results) ready_[At(slot)] = computed_[At(slot)] = stage;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      int& last = last_read_[At(instruction.operands[i])];
      last = std::max(last, stage);
    }
    return stage;
  }

  void AddSize(const ExecInstruction& instruction, ProgramStage* stage) const {
    const size_t axis = static_cast<size_t>(instruction.attrs.Int("dimension"));
    stage->sizes.push_back({.symbol = instruction.decides,
                            .size = instruction.operands[1],
                            .extent = program_.slot_types[At(instruction.operands[0])].shape[axis].size});
  }

  void Fill(int number, const std::vector<const ExecInstruction*>& instructions, ProgramStage* stage) const {
    ExecProgram& part = stage->program;
    part.name = program_.name;
    part.row_major = program_.row_major;
    part.passes = program_.passes;
    part.one_session = program_.one_session;
    absl::flat_hash_map<Slot, Slot> own;  // slot of the stage by slot of the program
    const auto add = [&](Slot slot) {
      own[slot] = part.num_slots();
      part.slot_types.push_back(program_.slot_types[At(slot)]);
      stage->slots.push_back(slot);
    };
    // The size is read by the host, not by the kernel.
    const auto operands_of = [](const ExecInstruction& instruction) {
      return absl::MakeConstSpan(instruction.operands)
          .first(DecidesSize(instruction) ? 1 : instruction.operands.size());
    };
    std::vector<const ProgramConstant*> constants;
    absl::flat_hash_set<Slot> used_constants;
    for (const ExecInstruction* instruction : instructions) {
      for (Slot slot : operands_of(*instruction)) {
        if (own.contains(slot) || computed_[At(slot)] == number) continue;
        if (const ProgramConstant* constant = constant_[At(slot)]; constant != nullptr) {
          if (used_constants.insert(slot).second) constants.push_back(constant);
          continue;
        }
        add(slot);
        stage->inputs.push_back(slot);
        part.inputs.push_back({.name = program_.inputs.size() > At(slot) ? program_.inputs[At(slot)].name : "",
                               .type = program_.slot_types[At(slot)]});
      }
    }
    for (const ProgramConstant* constant : constants) {
      add(constant->slot);
      part.constants.push_back({.slot = own[constant->slot], .value = constant->value});
    }
    for (const ExecInstruction* instruction : instructions) {
      for (Slot slot : instruction->results) {
        add(slot);
        if (is_output_[At(slot)] || last_read_[At(slot)] > number) {
          stage->outputs.push_back(slot);
          part.outputs.push_back({.slot = own[slot]});
        }
      }
      if (DecidesSize(*instruction)) AddSize(*instruction, stage);
      ExecInstruction mapped = *instruction;
      mapped.operands.clear();
      for (Slot slot : operands_of(*instruction)) mapped.operands.push_back(own[slot]);
      mapped.last_use.assign(mapped.operands.size(), false);
      for (Slot& slot : mapped.results) slot = own[slot];
      part.instructions.push_back(std::move(mapped));
    }
    // The stages' order is not the program's.
    if (program_.knows_last_uses) MarkLastUses(&part);
  }

  void AddGuard(const ProgramGuard& guard, std::vector<ProgramStage>* stages) const {
    const int stage = std::max(StageOf(guard.guard.lhs), StageOf(guard.guard.rhs));
    (*stages)[At(stage)].program.guards.push_back(guard);
  }

  const ExecProgram& program_;
  std::vector<int> ready_;                        // by slot: the first stage in which an instruction may read it
  std::vector<int> computed_;                     // by slot: the stage that computes it, or kNowhere
  std::vector<int> last_read_;                    // by slot: the last stage that reads it, or kNowhere
  std::vector<bool> is_output_;                   // by slot
  std::vector<const ProgramConstant*> constant_;  // by slot; null: none
  absl::flat_hash_map<std::string, int> stage_of_symbol_;
};

}  // namespace

bool HasRunTimeSizes(const ExecProgram& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(), DecidesSize);
}

std::vector<ProgramStage> SplitIntoStages(const ExecProgram& program) { return Splitter(program).Split(); }

}  // namespace tensord
