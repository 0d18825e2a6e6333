#ifndef TENSORD_ENGINE_PASSES_FUSION_FUSION_GROUPS_H_
#define TENSORD_ENGINE_PASSES_FUSION_FUSION_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "engine/ir/graph.h"

namespace tensord {

// Nodes that become one kernel. Every value in it has the shape of `space`, or that shape without the reduced axes, or
// one element; axes of size 1 do not count.
struct FusionGroup {
  ValueId space;
  absl::InlinedVector<int64_t, 4> reduced_axes;  // of the space's shape
  std::vector<int32_t> nodes;                    // in order: elementwise ops and reductions
};

// The nodes of a graph that decide sizes, by the symbol of the size.
class SizeDeciders {
 public:
  explicit SizeDeciders(const Graph& graph);
  bool empty() const { return nodes_.empty(); }
  // Calls visit(node) for each node that must be run before a value of that type can be made.
  void ForEach(const TensorType& type, absl::FunctionRef<void(int32_t node)> visit) const;
  // Does the same for a value that is read through layout ops, and for all nodes on the way to it from `source`.
  void ForEachOnWay(ValueId value, ValueId source, absl::FunctionRef<void(int32_t node)> visit) const;

 private:
  const Graph& graph_;
  absl::flat_hash_map<std::string, int32_t> nodes_;
};

struct FusionGroups {
  std::vector<FusionGroup> groups;
  std::vector<int32_t> group_of;  // by node; -1: the node is in none
  // The value that a group reads from outside in each value's place. The way from it to the value is layout ops, which
  // the group applies as it reads, without a copy.
  std::vector<ValueId> source;
};

// The most nodes of a group; beyond it compiling and registers cost more than memory does.
inline constexpr int32_t kMaxFusedNodes = 1024;
// The most reductions of a group that wait for one another. A kernel goes through its space once for each, and may have
// to compute all before anew each time: with more, its code and the time to compile it grow with their square, to save
// one trip to memory in so many.
inline constexpr int32_t kMaxFusedStages = 8;
inline constexpr int32_t kMaxFusedOperands = 128;  // read from outside; one that is read twice may count twice

// Parts a typed graph into maximal groups, in time n log n. Between two groups there are edges in one direction only.
FusionGroups FindFusionGroups(const Graph& graph);

// Tells whether a group takes the node along instead of reading its result: an iota, a constant of one element.
bool IsFusedLeaf(const Node& node);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_FUSION_FUSION_GROUPS_H_
