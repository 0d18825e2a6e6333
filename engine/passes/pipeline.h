#ifndef TENSORD_ENGINE_PASSES_PIPELINE_H_
#define TENSORD_ENGINE_PASSES_PIPELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/passes/rewriting/pass.h"

namespace tensord {

// The record of one run of a pass.
struct PassRecord {
  std::string name;
  bool fired = false;        // it changed something
  int64_t duration_ns = 0;   // without the check of its result
  int64_t nodes_before = 0;  // of a pass of the program: instructions
  int64_t nodes_after = 0;
};

// The passes that run: those on by default and those enabled, without those disabled.
struct PassSelection {
  absl::Span<const std::string> disabled;
  absl::Span<const std::string> enabled;

  bool Selects(absl::string_view name, bool on_by_default) const;
};

// Returns the passes of graphs in the order in which they run. pipeline.cc gives the reasons for it. A pass may stand
// there several times.
absl::Span<const Pass> GraphPasses();

// Runs the selected passes of the graph, one record each in the order in which they ran. The types are checked before
// the first and after each that changed something.
absl::StatusOr<std::vector<PassRecord>> RunPipeline(Graph* graph, const PassOptions& options,
                                                    const PassSelection& selection = {});

// Returns the names of the passes that changed something, each once, in order.
std::vector<std::string> FiredPasses(absl::Span<const PassRecord> records);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_PIPELINE_H_
