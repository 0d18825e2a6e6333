#ifndef TENSORD_BACKENDS_CPU_JIT_REGISTERS_H_
#define TENSORD_BACKENDS_CPU_JIT_REGISTERS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "backends/cpu/jit/program.h"

namespace tensord::cpu {

// The place of an operand: in a register, or in memory, in a slot of the frame or, for leaves, at their source.
struct JitOperand {
  JitNodeId node;
  RegisterId reg;
  SlotId slot;
  bool in_register() const { return reg.index >= 0; }
};

struct JitInstruction {
  enum class Kind : uint8_t {
    kLoad,   // operand 0, which is in memory, to `reg`
    kSpill,  // operand 0, which is in a register, to `slot`
    kOp,     // of the node
    kStore,  // of the node
  };
  Kind kind = Kind::kOp;
  JitNodeId node;
  RegisterId reg;
  SlotId slot;
  std::array<JitOperand, 4> operands;
};

// A program with registers: one turn of its loop, straight on. `reg` of an op may be that of an operand.
struct JitSchedule {
  std::vector<JitInstruction> instructions;
  IdVector<JitNodeId, RegisterId> pinned;  // the registers that leaves are kept in around the loop
  int32_t num_slots = 0;
  bool has_calls = false;
};

// Allocates by furthest next use, over registers [0, num_registers). A call takes its operands in any place, leaves all
// other registers empty and gives its value in register 0.
JitSchedule AllocateJitRegisters(const JitProgram& program, int num_registers);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_REGISTERS_H_
