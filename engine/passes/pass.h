#ifndef TENSORD_ENGINE_PASSES_PASS_H_
#define TENSORD_ENGINE_PASSES_PASS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace tensord {

struct PassOptions {
  // Arguments and results cross the wire row-major, so that reversed axes are the natural order of storage.
  bool row_major = false;
};

// One rewrite of a typed graph into an equivalent typed graph. Pure.
struct Pass {
  absl::string_view name;
  absl::string_view summary;
  // True, with the new graph in `graph`, where something changed.
  absl::StatusOr<bool> (*run)(Graph* graph, const PassOptions& options);
};

// The passes in the order in which they run; pipeline.cc gives the reasons for it.
absl::Span<const Pass> Pipeline();

// Runs the pipeline but for the disabled passes; returns the names of those that changed something. The types are
// checked again after each that did. PASS_UNKNOWN where a disabled name is none.
absl::StatusOr<std::vector<std::string>> RunPipeline(Graph* graph, const PassOptions& options,
                                                     absl::Span<const std::string> disabled);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_PASS_H_
