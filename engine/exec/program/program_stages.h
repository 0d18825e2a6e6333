#ifndef TENSORD_ENGINE_EXEC_PROGRAM_PROGRAM_STAGES_H_
#define TENSORD_ENGINE_EXEC_PROGRAM_PROGRAM_STAGES_H_

#include <string>
#include <vector>

#include "engine/exec/program/exec_program.h"
#include "engine/tensor/dim_expr.h"

namespace tensord {

// A size that the run decides: TruncatedSize of the value of a slot and of the extent that is cut.
struct RunTimeSize {
  std::string symbol;
  Slot size = 0;
  DimExpr extent;
};

// Instructions that can be bound together: all sizes are known when the stages before have run. A program over slots of
// its own; `inputs` and `outputs` are the same values as slots of the whole program.
struct ProgramStage {
  std::vector<RunTimeSize> sizes;  // known from here on
  ExecProgram program;
  std::vector<Slot> slots;  // of the whole program, by slot of the stage
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;  // values that a later stage or the caller reads
};

// Tells whether the run decides a size of the program.
bool HasRunTimeSizes(const ExecProgram& program);

// Each instruction in the first stage in which its operands and sizes are known; a guard in the first in which its
// sizes are. Outputs that are inputs or constants of the program are outputs of no stage.
std::vector<ProgramStage> SplitIntoStages(const ExecProgram& program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_PROGRAM_STAGES_H_
