#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_RENAMING_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_RENAMING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace tensord {

// Returns the names of a graph's inputs and nodes, in order. Names are no part of a program's key, so one program
// serves graphs that call their nodes otherwise.
std::vector<std::string> NamesOf(const Graph& graph);

// Maps the names that a program was compiled with to those of the graph that a client sent for it, so that the client
// reads of its own nodes. A value; an empty one renames nothing.
class Renaming {
 public:
  Renaming() = default;
  // `program_names` are NamesOf a graph of the same program. Linear; allocates only where names differ.
  Renaming(absl::Span<const std::string> program_names, const Graph& graph);
  // The same with NamesOf the graph.
  Renaming(absl::Span<const std::string> program_names, absl::Span<const std::string> graph_names);

  bool empty() const { return names_.empty(); }
  // Returns the name itself where the graph has no other for it.
  const std::string& Of(const std::string& name) const;
  // A refusal that names a node of the program names the graph's.
  absl::Status Of(absl::Status status) const;

 private:
  absl::flat_hash_map<std::string, std::string> names_;  // the graph's by the program's, where they differ
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_RENAMING_H_
