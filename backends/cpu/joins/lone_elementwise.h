#ifndef TENSORD_BACKENDS_CPU_JOINS_LONE_ELEMENTWISE_H_
#define TENSORD_BACKENDS_CPU_JOINS_LONE_ELEMENTWISE_H_

#include <optional>

#include "engine/exec/backend/bound_instruction.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// Returns the micro program of an elementwise op that is not fused, over all elements as one axis. Nothing for other
// ops, and if an operand has neither as many elements as the result nor one.
std::optional<MicroProgram> ElementwiseProgram(const BoundInstruction& instruction);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_LONE_ELEMENTWISE_H_
