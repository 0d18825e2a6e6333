#ifndef TENSORD_ENGINE_EXEC_BACKEND_BOUND_INSTRUCTION_H_
#define TENSORD_ENGINE_EXEC_BACKEND_BOUND_INSTRUCTION_H_

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "engine/fusion/micro_program.h"
#include "engine/ir/attribute.h"
#include "engine/ir/op_def.h"
#include "engine/tensor/shape.h"

namespace tensord {

// One instruction of a program with all sizes known: the input to a kernel's making. Size expressions in `attrs` are
// not to be read; the results' types have their values. Borrows from the program that it is part of.
struct BoundInstruction {
  const OpDef* op = nullptr;
  const Attributes* attrs = nullptr;
  absl::InlinedVector<ConcreteType, 3> operands;
  absl::InlinedVector<ConcreteType, 1> results;
  const MicroProgram* micro = nullptr;  // of a fused instruction
};

// Tells whether an axis that the instruction reads, writes or goes through has no elements. A fused instruction may go
// through such an axis while its operands and results have elements: a slice to nothing and a sum over it.
bool HasEmptyAxis(const BoundInstruction& instruction);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_BOUND_INSTRUCTION_H_
