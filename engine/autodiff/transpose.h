#ifndef TENSORD_ENGINE_AUTODIFF_TRANSPOSE_H_
#define TENSORD_ENGINE_AUTODIFF_TRANSPOSE_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/autodiff/linearize.h"
#include "engine/ir/derivative_builder.h"
#include "engine/ir/graph.h"

namespace tensord {

// Walks over the tangents' nodes backwards, and appends the nodes of their cotangents to another graph. That graph has
// the source's inputs and copies of its nodes. What the backward walk reads of the forward one besides is copied where
// it is first read. Borrows all three; confined to one thread.
class Transposition {
 public:
  // `values` are the target's values, by value of the linearized graph; those that are not copied yet are unset.
  Transposition(const Graph& source, const LinearizedGraph& linearized, std::vector<ValueId> values, Graph* target,
                DerivativeBuilder* builder);

  // Adds a cotangent, a value of the target, to that of a tangent.
  void AddCotangent(ValueId tangent, ValueId cotangent);
  // Goes from the last node to the first.
  absl::Status Run();
  // Returns the sum of the cotangents of a tangent; unset: zero.
  ValueId CotangentOf(ValueId tangent) const { return cotangents_[static_cast<size_t>(tangent.index)]; }

 private:
  void TransposeNode(const Node& node, const OpDef& op);
  // Returns the target's value, and copies its node if that was not done yet.
  ValueId Copied(ValueId value);

  const Graph& source_;
  const LinearizedGraph& linearized_;
  Graph& target_;
  DerivativeBuilder& builder_;
  std::vector<ValueId> values_;
  std::vector<ValueId> cotangents_;  // by value of the linearized graph
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_TRANSPOSE_H_
