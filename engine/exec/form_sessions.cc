#include "engine/exec/form_sessions.h"

namespace tensord {

bool FormSessions(ExecProgram* program) {
  program->one_session = true;
  return program->instructions.size() > 1;
}

}  // namespace tensord
