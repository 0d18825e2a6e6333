#ifndef TENSORD_ENGINE_EXEC_FORM_SESSIONS_H_
#define TENSORD_ENGINE_EXEC_FORM_SESSIONS_H_

#include "engine/exec/exec_program.h"

namespace tensord {

// Lets one backend session span as many instructions as it can hold; without it each is a session of its own. True
// where there are two instructions or more.
bool FormSessions(ExecProgram* program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_FORM_SESSIONS_H_
