#ifndef TENSORD_ENGINE_AUTODIFF_JOINED_SLICES_H_
#define TENSORD_ENGINE_AUTODIFF_JOINED_SLICES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/autodiff/linearize.h"
#include "engine/ir/derivative_builder.h"
#include "engine/ir/graph.h"

namespace tensord {

// Cotangents of tangents that are read in slices which share no element. They are put side by side, with zeros between
// them, where the rule of Slice would pad each to the whole and add them all. Joins slices without strides of tensors
// of known sizes, if straight cuts through the whole tensor tell them apart, a few deep. Borrows the linearized graph;
// confined to one thread.
class JoinedSlices {
 public:
  explicit JoinedSlices(const LinearizedGraph& linearized);

  // Takes the cotangent of a value; false if it is no slice that is joined.
  bool Take(ValueId slice, ValueId cotangent);
  // Returns the cotangent that slices give to a tangent, once all nodes that read it were transposed. Unset: zero.
  ValueId Join(ValueId tangent, DerivativeBuilder* builder);

 private:
  struct Box {
    std::vector<int64_t> starts, limits;
    ValueId cotangent;  // unset: none was taken
  };

  const Graph& graph_;
  absl::flat_hash_map<int32_t, std::vector<Box>> boxes_;                // by tangent: its slices
  absl::flat_hash_map<int32_t, std::pair<int32_t, size_t>> positions_;  // by a slice's result: the tangent, its box
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_JOINED_SLICES_H_
