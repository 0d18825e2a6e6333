#include "engine/exec/backend/bound_instruction.h"

#include <algorithm>

namespace tensord {

bool HasEmptyAxis(const BoundInstruction& instruction) {
  const auto has_none = [](const ConcreteType& type) { return type.num_bytes() == 0; };
  return std::any_of(instruction.operands.begin(), instruction.operands.end(), has_none) ||
         std::any_of(instruction.results.begin(), instruction.results.end(), has_none) ||
         (instruction.micro != nullptr && instruction.micro->num_points(MicroLevel::kFull) == 0);
}

}  // namespace tensord
