#ifndef TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_VIEWS_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_VIEWS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace tensord {

// One of the indices that an axis of a view is counted with, and how far it moves along each axis of the base.
struct AffineDigit {
  int64_t size = 1;  // more than 1
  std::vector<int64_t> steps;
  friend bool operator==(const AffineDigit&, const AffineDigit&) = default;
};
using AffineDigits = std::vector<AffineDigit>;
using AffinePlace = std::vector<int64_t>;  // by axis of the base

// A value as elements of another one, the base: element (i, j, …) is the base's at an affine function of the digits of
// i, j, …, the fastest digit first, and 0 if the base has none there. A sum of views has a start for each of them.
// Steps are not negative. Sizes are known, and none is 0.
struct AffineView {
  ValueId base;
  std::vector<int64_t> sizes;       // of the base
  std::vector<AffinePlace> starts;  // by summand
  std::vector<AffineDigits> axes;   // by axis of the value
  AffineDigits summed;              // that the base itself is summed over
  bool joins = false;               // a concatenation lies between
};

// The views that the values of a graph are of others: through slices, pads with 0, transposes, column-major reshapes,
// broadcasts that add axes of size 1, concatenations of equal windows at equal distances, and additions.
//
// Borrows the graph; confined to one thread.
class AffineViews {
 public:
  // Views of tensors, without additions.
  explicit AffineViews(const Graph& graph);
  // Views of some nodes' results, and of nothing else. `begin` returns a node's result as the view of a base with any
  // axes; nothing if views do not begin there.
  using Begin = std::function<std::optional<AffineView>(const Node& node)>;
  AffineViews(const Graph& graph, const Begin& begin);

  // Returns the view. A value that is no view of another one is one of itself, or none where views begin at nodes.
  // Nothing if a size is 0 or not known.
  std::optional<AffineView> Of(ValueId value) const;
  // Returns the view that a node made, null if the value is no such view.
  const AffineView* Find(ValueId value) const {
    const std::optional<AffineView>& made = views_[static_cast<size_t>(value.index)];
    return made.has_value() ? &*made : nullptr;
  }

 private:
  void Make(const Begin& begin);
  std::optional<AffineView> Made(const Node& node) const;
  std::optional<AffineView> MadeByPad(const Node& node) const;
  std::optional<AffineView> MadeByConcatenate(const Node& node) const;
  std::optional<AffineView> MadeByAdd(const Node& node) const;

  const Graph& graph_;
  const bool begins_at_nodes_;
  std::vector<std::optional<AffineView>> views_;  // by value; of what a layout op makes
  size_t places_ = 0;                             // of all sums
};

// Returns digits that count these places, the fastest first: each place is a step from one before it. Nothing if no
// digits do, or a step is negative.
std::optional<AffineDigits> LatticeOf(absl::Span<const AffinePlace> places);

// Returns the digits regrouped into axes of these sizes; nothing if a digit would have to be cut unevenly.
std::optional<std::vector<AffineDigits>> Regrouped(absl::Span<const AffineDigit> digits,
                                                   absl::Span<const int64_t> sizes);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_VIEWS_H_
