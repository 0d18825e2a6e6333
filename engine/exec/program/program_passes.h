#ifndef TENSORD_ENGINE_EXEC_PROGRAM_PROGRAM_PASSES_H_
#define TENSORD_ENGINE_EXEC_PROGRAM_PROGRAM_PASSES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/exec/program/exec_program.h"
#include "engine/passes/pipeline.h"

namespace tensord {

// A rewrite of the lowered program. Pure, and linear in the program. True if something changed.
struct ProgramPass {
  absl::string_view name;
  absl::string_view summary;
  bool (*run)(ExecProgram* program);
};

// Sets last_use of every instruction. Linear. True if an operand is used for the last time.
bool MarkLastUses(ExecProgram* program);

// Lets one backend session span as many instructions as it can hold; without it each is a session of its own. True
// if there are two instructions or more.
bool FormSessions(ExecProgram* program);

// Returns the passes of programs in the order in which they run, after those of the graph.
absl::Span<const ProgramPass> ProgramPasses();

// Returns the names of all passes, of the graph and of the program, each once and in order.
std::vector<std::string> PassNames();

// Fails with PASS_UNKNOWN if one of the names is no pass's.
absl::Status CheckPassNames(absl::Span<const std::string> names);

// Runs the selected passes of the program and appends their records to its own.
void RunProgramPasses(const PassSelection& selection, ExecProgram* program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_PROGRAM_PASSES_H_
