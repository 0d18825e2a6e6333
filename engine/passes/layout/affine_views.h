#ifndef TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_VIEWS_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_VIEWS_H_

#include <cstdint>
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

// A value as elements of another one, the base: element (i, j, …) is the base's at an affine function of the digits of
// i, j, …, the fastest digit first, and 0 if the base has none there. Steps are not negative. Sizes are known, and
// none is 0.
struct AffineView {
  ValueId base;
  std::vector<int64_t> starts;     // by axis of the base
  std::vector<AffineDigits> axes;  // by axis of the value
  bool joins = false;              // a concatenation lies between
};

// The views that the values of a graph are of others: through slices, pads with 0, transposes, column-major reshapes,
// broadcasts that add axes of size 1, and concatenations of equal windows at equal distances.
//
// Borrows the graph; confined to one thread.
class AffineViews {
 public:
  explicit AffineViews(const Graph& graph);

  // Returns the view, or the value itself if it is no view of another one. Nothing if a size is 0 or not known.
  std::optional<AffineView> Of(ValueId value) const;

 private:
  std::optional<AffineView> Made(const Node& node) const;
  std::optional<AffineView> MadeByPad(const Node& node) const;
  std::optional<AffineView> MadeByConcatenate(const Node& node) const;

  const Graph& graph_;
  std::vector<std::optional<AffineView>> views_;  // by value; of what a layout op makes
};

// Returns the digits regrouped into axes of these sizes; nothing if a digit would have to be cut unevenly.
std::optional<std::vector<AffineDigits>> Regrouped(absl::Span<const AffineDigit> digits,
                                                   absl::Span<const int64_t> sizes);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_VIEWS_H_
