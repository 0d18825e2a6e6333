#ifndef TENSORD_ENGINE_EXEC_PIPELINE_H_
#define TENSORD_ENGINE_EXEC_PIPELINE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/exec/exec_program.h"
#include "engine/passes/pass.h"

namespace tensord {

// A rewrite of the lowered program. Pure, and linear in the program. True where something changed.
struct ProgramPass {
  absl::string_view name;
  absl::string_view summary;
  bool (*run)(ExecProgram* program);
};

// Which passes run: those that are on by default and those enabled, but for those disabled.
struct PassSelection {
  absl::Span<const std::string> disabled;
  absl::Span<const std::string> enabled;
};

// The passes in the order in which they run: those of the graph, then those of the program. pipeline.cc gives the
// reasons for it. A pass may stand there several times.
absl::Span<const Pass> GraphPasses();
absl::Span<const ProgramPass> ProgramPasses();
// The names of both, each once, in order.
std::vector<std::string> PassNames();

// PASS_UNKNOWN where one of the names is no pass's.
absl::Status CheckPassNames(absl::Span<const std::string> names);

// Runs the selected passes of the graph, one record each in the order in which they ran. The types are checked before
// the first and after each that changed something.
absl::StatusOr<std::vector<PassRecord>> RunPipeline(Graph* graph, const PassOptions& options,
                                                    const PassSelection& selection = {});

// Runs the selected passes of the program and appends their records to its own.
void RunProgramPasses(const PassSelection& selection, ExecProgram* program);

// The names of the passes that changed something, each once, in order.
std::vector<std::string> FiredPasses(absl::Span<const PassRecord> records);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PIPELINE_H_
