#ifndef TENSORD_ENGINE_EXEC_BACKEND_LONE_ELEMENTWISE_H_
#define TENSORD_ENGINE_EXEC_BACKEND_LONE_ELEMENTWISE_H_

#include <optional>

#include "engine/exec/backend/bound_instruction.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// Returns the micro program of an elementwise op that is not fused, over all elements as one axis. Nothing for other
// ops, and if an operand has neither as many elements as the result nor one.
std::optional<MicroProgram> ElementwiseProgram(const BoundInstruction& instruction);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_LONE_ELEMENTWISE_H_
