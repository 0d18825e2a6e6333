#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_COMPILER_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_COMPILER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/fingerprint.h"
#include "engine/ir/graph.h"
#include "engine/runtime/compile/compile_watch.h"
#include "engine/runtime/compile/compiled_program.h"

namespace tensord {

// Changes with everything that makes the compiler's output differ; part of every fingerprint.
inline constexpr absl::string_view kCompilerVersion = "tensord-1";

struct CompileSettings {
  std::string device;      // resolved: "cpu:0"
  bool row_major = false;  // arguments and results cross the wire row-major
  std::vector<std::string> disabled_passes;
  std::vector<std::string> enabled_passes;  // beyond those that are on by default; disabled_passes prevail
  std::string tenant;                       // whose program it is alone; empty: everybody's who knows its fingerprint
  // That the graph may have when its ops are written out by simpler ones. Makes no other program, so is in no key.
  int64_t most_nodes = std::numeric_limits<int64_t>::max();
};

// The identity of a compiled program: the canonical bytes of the graph (engine/ir/canonical.h), the settings and the
// compiler's version. The fingerprint is its SHA-256, and the bytes confirm equality.
struct ProgramKey {
  Fingerprint fingerprint;
  std::string bytes;
};
ProgramKey MakeProgramKey(const Graph& graph, const CompileSettings& settings);

// Graph (types not yet inferred) → program: verification, passes, lowering, the backend's consent to every instruction,
// binding. Refusals name the node. Pure, so thread-safe; takes time in proportion to the graph. CANCELLED soon after
// the thread's work was stopped (engine/base/stop_signal.h). `bindings` says how much the program keeps for sets
// of sizes.
absl::StatusOr<CompiledProgramPtr> Compile(Graph graph, const CompileSettings& settings, const Fingerprint& fingerprint,
                                           Backend* backend, const BindingOptions& bindings = {},
                                           const CompileWatch& watch = nullptr);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_COMPILER_H_
