// How single instructions become steps: their functions, and the forms in which operands reach them.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/elementwise/single_operand_loops.h"
#include "backends/cpu/fused/lowering.h"
#include "engine/base/refusal.h"

namespace tensord::cpu {
namespace {

absl::Status Unsupported(const MicroInstruction& instruction, DType dtype) {
  return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("the CPU has no kernel for ", Def(instruction.op).name,
                                                            " on ", Name(dtype), " in a fused instruction"));
}

// Returns the function for one element a, or b, with an array; null if there is none.
ElementwiseFunction SingleFunction(const MicroInstruction& instruction, DType dtype, bool single_a) {
  const SingleOperandLoops& loops = GetSingleOperandLoops();
  const size_t column = static_cast<size_t>(dtype);
  if (instruction.kind == MicroKind::kBinary) {
    return (single_a ? loops.single_a : loops.single_b)[static_cast<size_t>(instruction.op)][column];
  }
  return (single_a ? loops.compare_single_a
                   : loops.compare_single_b)[static_cast<size_t>(instruction.direction)][column];
}

}  // namespace

FusedStep FusedLowering::Copy(PlaceId from, PlaceId to, int64_t element_bytes) {
  return {.kind = FusedStepKind::kCopy, .element_bytes = static_cast<int8_t>(element_bytes), .a = from, .out = to};
}

void FusedLowering::LowerLeaf(int32_t value, MicroLevel level, Steps* steps) {
  const MicroInstruction& instruction = At(value);
  const int64_t bytes = SizeOf(instruction.dtype);
  const bool is_full = level == MicroLevel::kFull;
  PlaceId& place = place_[static_cast<size_t>(value)];
  if (instruction.kind == MicroKind::kConstant) {
    place = AddPlace(FusedPlace::Kind::kConstant, bytes, 1);
    std::string& constants = plan_->constants;
    constants.resize((constants.size() + 15) / 16 * 16);
    plan_->places.back().offset = static_cast<int64_t>(constants.size());
    constants.append(instruction.constant->bytes().data(), static_cast<size_t>(bytes));
    return;
  }
  const bool is_load = instruction.kind == MicroKind::kLoad;
  const AccessId access =
      AddAccess(instruction.access, level, instruction.dtype, is_load ? instruction.tensor : -1, -1);
  const bool buffered = NeedsBuffer(plan_->accesses[access]) || (!is_load && !plan_->accesses[access].is_periodic);
  const int64_t elements = level == MicroLevel::kKept ? space_.width(false) : 1;
  const auto kind = is_full ? FusedPlace::Kind::kRegister : FusedPlace::Kind::kTask;
  const PlaceId buffer = buffered ? AddPlace(kind, bytes, is_full ? 0 : elements) : PlaceId();
  place = AddPlace(FusedPlace::Kind::kMoving, bytes, 0);
  steps->push_back({.kind = is_load ? FusedStepKind::kLoad : FusedStepKind::kNumbers,
                    .dtype = instruction.dtype,
                    .out = place,
                    .buffer = buffer,
                    .access = access});
}

PlaceId FusedLowering::SingleOf(int32_t value, MicroLevel level) const {
  if (value < 0) return {};
  const MicroLevel own = LevelOf(value);
  const bool is_single = own == MicroLevel::kUniform ||
                         (own == MicroLevel::kKept && level == MicroLevel::kFull && space_.has_single_rows());
  return is_single && own != level ? place_[static_cast<size_t>(value)] : PlaceId();
}

PlaceId FusedLowering::ArrayOf(int32_t value, MicroLevel level, int32_t stage, Steps* steps) {
  if (value < 0) return {};
  const size_t v = static_cast<size_t>(value);
  const MicroLevel own = LevelOf(value);
  if (own != level) return Repeated(value, level, stage);
  if (place_[v].index >= 0) return place_[v];
  if (IsLeaf(At(value))) {
    LowerLeaf(value, level, steps);
  } else {
    place_[v] = AddPlace(FusedPlace::Kind::kMoving, SizeOf(At(value).dtype), 0);
    steps->push_back({.kind = FusedStepKind::kSaved, .out = place_[v], .saved = stages_.slot[v]});
  }
  return place_[v];
}

// Returns a value of a lower level, repeated as often as values of `level` are long.
PlaceId FusedLowering::Repeated(int32_t value, MicroLevel level, int32_t stage) {
  const size_t v = static_cast<size_t>(value);
  const bool is_uniform = LevelOf(value) == MicroLevel::kUniform;
  const bool over_tile = level == MicroLevel::kFull;
  if (!over_tile && space_.has_single_rows()) return place_[v];
  if (!is_uniform && is_cut_ && !space_.has_single_rows() && space_.tile_rows() == 1) return place_[v];
  PlaceId& repeated = (over_tile ? tile_ : row_)[v];
  // A part of a group repeats the values that its stage reads, and no more.
  if (repeated.index >= 0 && (is_uniform || !is_split_ || repeated_[v] == stage)) return repeated;
  repeated_[v] = stage;
  const int64_t bytes = SizeOf(At(value).dtype);
  if (repeated.index < 0) {
    repeated = AddPlace(FusedPlace::Kind::kTask, bytes, over_tile ? plan_->tile_elements : space_.width(false));
  }
  Steps& steps = is_uniform ? plan_->repeats : plan_->stages[static_cast<size_t>(stage)].repeats;
  steps.push_back({.kind = FusedStepKind::kRepeat,
                   .single_a = is_uniform || space_.has_single_rows(),
                   .over_tile = over_tile,
                   .element_bytes = static_cast<int8_t>(bytes),
                   .a = place_[v],
                   .out = repeated});
  return repeated;
}

// Returns the step of an instruction over arrays, without its places; kFunction without a function where there is none.
FusedStep FusedLowering::StepOf(int32_t value) const {
  const MicroInstruction& instruction = At(value);
  const DType computed = At(instruction.operands[0]).dtype;
  FusedStep step{.dtype = instruction.dtype,
                 .computed = computed,
                 .micro = instruction.kind,
                 .op = instruction.op,
                 .direction = instruction.direction};
  switch (instruction.kind) {
    case MicroKind::kUnary:
    case MicroKind::kBinary:
      step.function = FindElementwise(instruction.op, computed);
      break;
    case MicroKind::kCompare:
      step.function = FindCompare(instruction.direction, computed);
      break;
    case MicroKind::kSelect:
      step.kind = FusedStepKind::kSelect;
      step.select = FindSelect(SizeOf(instruction.dtype));
      break;
    case MicroKind::kClamp:
      step.kind = FusedStepKind::kClamp;
      break;
    case MicroKind::kConvert:
      step.kind = FusedStepKind::kConvert;
      step.convert = FindConvert(computed, instruction.dtype);
      break;
    default:
      break;
  }
  return step;
}

absl::Status FusedLowering::Compute(int32_t value, MicroLevel level, int32_t stage, PlaceId out, Steps* steps) {
  const MicroInstruction& instruction = At(value);
  const auto [a, b, c] = instruction.operands;
  if (a < 0) return Unsupported(instruction, instruction.dtype);
  const DType computed = At(a).dtype;
  FusedStep step = StepOf(value);
  if (step.kind == FusedStepKind::kFunction && step.function == nullptr) return Unsupported(instruction, computed);
  step.out = out;
  const PlaceId single_a = SingleOf(a, level);
  const PlaceId single_b = SingleOf(b, level);
  const PlaceId single_c = SingleOf(c, level);
  if (instruction.kind == MicroKind::kBinary || instruction.kind == MicroKind::kCompare) {
    const bool one_single = (single_a.index >= 0) != (single_b.index >= 0);
    const ElementwiseFunction function =
        one_single ? SingleFunction(instruction, computed, single_a.index >= 0) : ElementwiseFunction();
    if (function != nullptr) {
      step.function = function;
      step.single_a = single_a.index >= 0;
      step.single_b = single_b.index >= 0;
      step.a = single_a.index >= 0 ? single_a : ArrayOf(a, level, stage, steps);
      step.b = single_b.index >= 0 ? single_b : ArrayOf(b, level, stage, steps);
      steps->push_back(step);
      return absl::OkStatus();
    }
  }
  if (instruction.kind == MicroKind::kClamp) {
    step.single_a = single_a.index >= 0;
    step.single_c = single_c.index >= 0;
  }
  step.a = step.single_a ? single_a : ArrayOf(a, level, stage, steps);
  step.b = ArrayOf(b, level, stage, steps);
  step.c = step.single_c ? single_c : ArrayOf(c, level, stage, steps);
  steps->push_back(step);
  return absl::OkStatus();
}

void FusedLowering::StoreLowerLevels(int32_t value, Steps* stores) {
  const size_t v = static_cast<size_t>(value);
  for (const int32_t r : results_[v]) {
    stores->push_back({.kind = FusedStepKind::kClose, .a = place_[v], .access = stores_[static_cast<size_t>(r)]});
  }
}

// Copies a value to its results, but for the one that it was computed in.
void FusedLowering::StoreFull(int32_t value, int32_t stage) {
  const size_t v = static_cast<size_t>(value);
  const bool is_leaf = IsLeaf(At(value));
  Steps* const steps = &plan_->stages[static_cast<size_t>(stage)].tile;
  for (size_t i = is_leaf ? 0 : 1; i < results_[v].size(); ++i) {
    const AccessId access = stores_[static_cast<size_t>(results_[v][i])];
    const int64_t bytes = SizeOf(At(value).dtype);
    const PlaceId from = ArrayOf(value, MicroLevel::kFull, stage, steps);
    const bool buffered = NeedsBuffer(plan_->accesses[access]);
    const PlaceId out = AddPlace(FusedPlace::Kind::kMoving, bytes, 0);
    const PlaceId buffer = buffered ? AddPlace(FusedPlace::Kind::kRegister, bytes, 0) : PlaceId();
    steps->push_back({.kind = FusedStepKind::kOpen, .out = out, .buffer = buffer, .access = access});
    steps->push_back(Copy(from, out, bytes));
    steps->push_back({.kind = FusedStepKind::kClose, .a = out, .buffer = buffer, .access = access});
  }
}

}  // namespace tensord::cpu
