#ifndef TENSORD_ENGINE_PASSES_FUSION_FUSION_VIEWS_H_
#define TENSORD_ENGINE_PASSES_FUSION_FUSION_VIEWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "engine/ir/graph.h"

namespace tensord {

// Shapes without their axes of size 1, numbered: two shapes have one number where they are equal as expressions.
class FusionShapes {
 public:
  using Sizes = absl::InlinedVector<int64_t, 4>;  // a number, or -1 - the number of an expression

  FusionShapes();
  int32_t NumberOf(const SymbolicShape& shape) { return NumberOf(SizesOf(shape)); }
  int32_t NumberOf(Sizes sizes);
  const Sizes& sizes(int32_t shape) const { return sizes_[static_cast<size_t>(shape)]; }
  static constexpr int32_t kScalar = 0;  // one element

 private:
  Sizes SizesOf(const SymbolicShape& shape);

  absl::flat_hash_map<Sizes, int32_t> numbers_;
  absl::flat_hash_map<std::string, int64_t> expressions_;
  std::vector<Sizes> sizes_;
};

// The view through which a value is read over layout ops: from `base`, at computed places.
struct FusionView {
  ValueId base;           // first value on the way down that is no view that a kernel may apply when it reads
  ValueId origin;         // first value on the way down that is not made by a layout op
  bool is_repeat = true;  // the way from the base only adds axes: what a kernel computes can be seen so
  // The value's axis for each axis of the base that is not of size 1, counted likewise.
  absl::InlinedVector<int32_t, 4> axes;
};

// Returns the bytes of a value; nothing where a size is no number, or where NumBytes gives nothing.
std::optional<int64_t> StaticBytes(const TensorType& type);

// Tells whether a value that is read repeated has so few bytes beside the result that it costs nothing to store and to
// read again. False where only a run knows.
bool IsSmallBeside(const TensorType& type, const TensorType& result);

// Finds the views by value. Transposes, slices and reversals are read in place if runs along the first axis stay whole,
// or if the tensor is small.
std::vector<FusionView> FindFusionViews(const Graph& graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_FUSION_FUSION_VIEWS_H_
