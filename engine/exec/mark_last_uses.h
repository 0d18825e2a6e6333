#ifndef TENSORD_ENGINE_EXEC_MARK_LAST_USES_H_
#define TENSORD_ENGINE_EXEC_MARK_LAST_USES_H_

#include "engine/exec/exec_program.h"

namespace tensord {

// Sets last_use of every instruction. Linear. True where an operand is used for the last time.
bool MarkLastUses(ExecProgram* program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MARK_LAST_USES_H_
