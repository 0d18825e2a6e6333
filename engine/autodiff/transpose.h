#ifndef TENSORD_ENGINE_AUTODIFF_TRANSPOSE_H_
#define TENSORD_ENGINE_AUTODIFF_TRANSPOSE_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "engine/autodiff/joined_slices.h"
#include "engine/autodiff/linearize.h"
#include "engine/autodiff/recomputation.h"
#include "engine/ir/derivative_builder.h"
#include "engine/ir/graph.h"

namespace tensord {

// Walks over the tangents' nodes backwards, and appends the nodes of their cotangents to another graph. That graph has
// the source's inputs and copies of its nodes. What the backward walk reads of the forward one besides is copied where
// it is first read. Borrows all three; confined to one thread.
class Transposition {
 public:
  // `values` are the target's values, by value of the linearized graph; those that are not copied yet are unset.
  // `is_kept` tells by value of the source which the backward walk reads where they are, as FindCheckpoints does; it
  // computes the others again. Empty: it reads all of them.
  Transposition(const Graph& source, const LinearizedGraph& linearized, std::vector<ValueId> values,
                const std::vector<bool>& is_kept, Graph* target, DerivativeBuilder* builder);

  // Adds a cotangent, a value of the target, to that of a tangent.
  void AddCotangent(ValueId tangent, ValueId cotangent);
  // Goes from the last node to the first.
  absl::Status Run();
  // Returns the sum of the cotangents of a tangent; unset: zero.
  ValueId CotangentOf(ValueId tangent) const { return cotangents_[static_cast<size_t>(tangent.index)]; }

 private:
  void TransposeNode(const Node& node, const Node& written);
  // Adds the cotangents that slices of the tangent gave.
  void AddSlices(ValueId tangent);
  // Returns the target's value. Copies its node if that was not done yet, or computes it again.
  ValueId Copied(ValueId value);

  const Graph& source_;
  const LinearizedGraph& linearized_;
  Graph& target_;
  DerivativeBuilder& builder_;
  std::vector<ValueId> values_;
  std::vector<ValueId> cotangents_;  // by value of the linearized graph
  JoinedSlices slices_;
  std::optional<Recomputation> recomputation_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_TRANSPOSE_H_
