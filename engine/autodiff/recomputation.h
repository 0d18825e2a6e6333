#ifndef TENSORD_ENGINE_AUTODIFF_RECOMPUTATION_H_
#define TENSORD_ENGINE_AUTODIFF_RECOMPUTATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/autodiff/linearize.h"
#include "engine/ir/derivative_builder.h"
#include "engine/ir/graph.h"

namespace tensord {

// Returns by value of the graph whether a backward pass finds it in memory: inputs, constants, values whose sizes only
// the run decides, and those that the references name, with the other results of their nodes. INVALID_ARGUMENT for a
// reference to no value, or a second one.
absl::StatusOr<std::vector<bool>> FindCheckpoints(const Graph& graph, const std::vector<std::string>& references);

// Computes values of the forward pass again in the backward pass, from those that are kept. Each is computed once,
// when it is first asked for, behind barriers that wait for the cotangent of that moment. Borrows all it is made with;
// confined to one thread.
class Recomputation {
 public:
  // `is_kept` is by value of the source. `values` are the target's values by value of the linearized graph, with the
  // whole forward pass; those that are not kept become unset.
  Recomputation(const Graph& source, const LinearizedGraph& linearized, const std::vector<bool>& is_kept,
                std::vector<ValueId>* values, DerivativeBuilder* builder);

  // Names the cotangent that exists when values are computed from now on.
  void WaitFor(ValueId cotangent);
  // Sets the values of a node of the linearized graph that is a copy of the source's, and of those that it needs.
  void Compute(int32_t node);

 private:
  ValueId Kept(ValueId value);
  ValueId OperandOf(ValueId value);
  void Copy(const Node& node);

  const LinearizedGraph& linearized_;
  std::vector<ValueId>& values_;
  DerivativeBuilder& builder_;
  std::vector<bool> is_stored_;  // by value of the linearized graph: kept, and no constant
  ValueId cotangent_;
  absl::flat_hash_map<int32_t, ValueId> behind_barriers_;  // by kept value, since WaitFor
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_RECOMPUTATION_H_
