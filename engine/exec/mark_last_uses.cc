#include "engine/exec/mark_last_uses.h"

#include <vector>

namespace tensord {

bool MarkLastUses(ExecProgram* program) {
  bool marked = false;
  std::vector<bool> read_later(static_cast<size_t>(program->num_slots()));
  for (const ProgramOutput& output : program->outputs) read_later[static_cast<size_t>(output.slot)] = true;
  for (auto it = program->instructions.rbegin(); it != program->instructions.rend(); ++it) {
    for (size_t i = it->operands.size(); i-- > 0;) {
      const size_t slot = static_cast<size_t>(it->operands[i]);
      it->last_use[i] = !read_later[slot];
      marked = marked || it->last_use[i];
      read_later[slot] = true;
    }
  }
  program->knows_last_uses = true;
  return marked;
}

}  // namespace tensord
