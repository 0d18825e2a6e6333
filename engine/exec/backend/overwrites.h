#ifndef TENSORD_ENGINE_EXEC_BACKEND_OVERWRITES_H_
#define TENSORD_ENGINE_EXEC_BACKEND_OVERWRITES_H_

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/exec/program/exec_program.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// {result, operand}: positions in one instruction.
using OverwritePairs = absl::InlinedVector<std::pair<int32_t, int32_t>, 4>;

// Returns the results that may be written to the memory of an operand of the same size in bytes while the instruction
// runs. Two operands may share that memory only if both may be overwritten. Every backend's kernels keep to this.
//   elementwise ops          the result over any operand
//   dynamic_update_slice     the result over the tensor that is updated
//   scatter                  likewise
//   fused                    the pairs of the micro program's InPlacePairs
OverwritePairs MayOverwrite(const ExecInstruction& instruction, const MicroProgram* micro);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_OVERWRITES_H_
