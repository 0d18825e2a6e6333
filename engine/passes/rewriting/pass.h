#ifndef TENSORD_ENGINE_PASSES_REWRITING_PASS_H_
#define TENSORD_ENGINE_PASSES_REWRITING_PASS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"

namespace tensord {

struct PassOptions {
  // Arguments and results cross the wire row-major, so that reversed axes are the natural order of storage.
  bool row_major = false;
  // True if the device runs nodes that passes make of several: fused nodes and affine_dot.
  bool fuses = false;
};

// One rewrite of a typed graph into an equivalent typed graph. Pure, and linear in the graph. The list of all stands in
// engine/passes/pipeline.cc.
struct Pass {
  absl::string_view name;
  absl::string_view summary;
  // True, with the new graph in `graph`, where something changed.
  absl::StatusOr<bool> (*run)(Graph* graph, const PassOptions& options);
  bool on_by_default = true;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_REWRITING_PASS_H_
