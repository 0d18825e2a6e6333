#ifndef TENSORD_ENGINE_EXEC_PROGRAM_EXEC_PROGRAM_H_
#define TENSORD_ENGINE_EXEC_PROGRAM_EXEC_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/ir/graph.h"
#include "engine/ir/inference.h"
#include "engine/passes/pipeline.h"
#include "engine/tensor/literal.h"

namespace tensord {

// A value of a program. Written once: by the caller (inputs), by the program itself (constants) or by one instruction.
using Slot = int32_t;

struct ExecInstruction {
  const OpDef* op = nullptr;
  Attributes attrs;
  absl::InlinedVector<Slot, 3> operands;
  absl::InlinedVector<Slot, 1> results;
  // True for operands whose slot no later instruction reads and that is no output. A slot that is an operand twice is
  // used last at its last position only. False if nobody has looked (knows_last_uses).
  absl::InlinedVector<bool, 3> last_use;
  std::string node;                   // name of the client's node that it computes
  std::string decides;                // the symbol of the size that the host decides for it; empty: none
  std::shared_ptr<const Graph> body;  // of a fused instruction
  const OpDef* written = nullptr;     // the op that the client gave that node; null: nobody has looked

  // Returns the op that refusals name.
  const OpDef& written_op() const { return written == nullptr ? *op : *written; }
};

struct ProgramConstant {
  Slot slot = 0;
  LiteralPtr value;
};

struct ProgramOutput {
  std::string name;
  Slot slot = 0;
};

// A guard with the node that asked for it.
struct ProgramGuard {
  ShapeGuard guard;
  std::string node;
  std::string op;
};

// A graph in executable form: instructions over slots, in order. Inputs are the slots 0, 1, …. Immutable once made, and
// so thread-safe; sizes may still be symbolic.
struct ExecProgram {
  std::string name;
  std::vector<GraphInput> inputs;        // as the client wrote them: before a reversal of the wire's order
  std::vector<TensorType> wire_outputs;  // likewise
  bool row_major = false;                // arguments and results cross the wire row-major: axes reversed in the slots
  std::vector<TensorType> slot_types;
  std::vector<ProgramConstant> constants;
  std::vector<ExecInstruction> instructions;
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramGuard> guards;
  std::vector<PassRecord> passes;  // that were run, in order
  bool knows_last_uses = false;    // set by mark_last_uses
  bool one_session = false;        // set by form_sessions: else every instruction is a session of its own

  int32_t num_slots() const { return static_cast<int32_t>(slot_types.size()); }
  // No size depends on a symbol.
  bool is_static() const;
  // Returns about how many bytes it occupies in memory.
  int64_t size_bytes() const;
};

// Returns the program of a typed graph, of the nodes that its outputs need. `guards` come from its inference; nodes
// that are constants become slots. Last uses are not marked.
ExecProgram LowerToProgram(const Graph& graph);

// Instructions, slots and types as text, for Explain.
std::string ToString(const ExecProgram& program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_EXEC_PROGRAM_H_
