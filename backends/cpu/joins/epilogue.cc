#include "backends/cpu/joins/epilogue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "backends/cpu/fused/make_plan.h"
#include "backends/cpu/fused/task.h"

namespace tensord::cpu {

bool Epilogue::IsPointwise(const MicroProgram& micro, size_t operand) {
  if (micro.has_reduced_axes()) return false;
  for (const MicroInstruction& instruction : micro.instructions) {
    if (instruction.kind == MicroKind::kReduce) return false;
    if (instruction.kind != MicroKind::kLoad || static_cast<size_t>(instruction.tensor) != operand) continue;
    if (instruction.level != MicroLevel::kFull || !IsDense(micro, instruction.access, MicroLevel::kFull)) return false;
  }
  return std::all_of(micro.results.begin(), micro.results.end(), [&](const MicroResult& result) {
    return micro.instructions[static_cast<size_t>(result.value)].level == MicroLevel::kFull;
  });
}

std::optional<Epilogue> Epilogue::Plan(const MicroProgram& micro, size_t operand, const JitOptions& jit) {
  absl::StatusOr<FusedPlan> plan = MakeFusedPlan(micro, jit, FusedPoints::kAnywhere);
  if (!plan.ok()) return std::nullopt;
  Epilogue epilogue(*std::move(plan));
  epilogue.operand_ = static_cast<int32_t>(operand);
  for (const auto& [result, overwritten] : InPlacePairs(micro)) {
    if (overwritten == epilogue.operand_ && epilogue.in_place_result_ < 0) epilogue.in_place_result_ = result;
  }
  return epilogue;
}

std::string Epilogue::Describe() const {
  std::string text = absl::StrCat("tiles of ", plan_.tile_elements, " elements");
  if (plan_.code != nullptr) absl::StrAppend(&text, ", ", plan_.code->code_bytes(), " bytes of code");
  return text;
}

void Epilogue::Run(const KernelArgs& args, const GemmPiece& piece, char* memory) const {
  FusedTask task(plan_, args, memory);
  // Columns that follow one another, both at their source and at their place, are one.
  const bool is_one = piece.columns == 1 || (piece.first_step == piece.rows && piece.elements_step == piece.rows);
  const bool is_in_place = args.operands[static_cast<size_t>(operand_)] != nullptr;
  task.RunPoints({.begin = piece.first,
                  .length = is_one ? piece.rows * piece.columns : piece.rows,
                  .step = piece.first_step,
                  .runs = is_one ? 1 : piece.columns},
                 {.operand = is_in_place ? -1 : operand_, .place = piece.elements, .step = piece.elements_step});
}

}  // namespace tensord::cpu
