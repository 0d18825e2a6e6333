#ifndef TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_PRODUCT_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_PRODUCT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/passes/layout/affine_views.h"

namespace tensord {

enum ProductSide : size_t { kLhs, kRhs };

// A product of two tensors that it reads at affine functions of indices: an affine_dot (engine/ops/affine_dot.h) that
// is being made. A value.
struct AffineProduct {
  // An index and its steps along both bases; no steps: it does not move along that base.
  struct Index {
    int64_t size = 1;
    std::array<std::vector<int64_t>, 2> steps;
  };
  std::array<ValueId, 2> bases;
  std::array<AffinePlace, 2> starts;
  std::vector<Index> result;  // the fastest first
  std::vector<Index> summed;
  bool joins = false;  // a concatenation lies between an operand and its base

  bool fits() const;
  // Returns the attributes of the affine_dot, whose result has the type; conjugations and dtype are those of `product`,
  // the attributes of a dot_general or an affine_dot.
  Attributes AttributesFor(const TensorType& type, const Attributes& product) const;
};

// Returns the dot_general with its operands followed up to their bases; nothing if it has integers or a permuted
// result, or batch axes or summed axes cannot be counted alike on both sides.
std::optional<AffineProduct> AffineProductOf(const Graph& graph, const Node& dot, const AffineViews& views);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_AFFINE_PRODUCT_H_
