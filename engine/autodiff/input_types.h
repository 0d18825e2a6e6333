#ifndef TENSORD_ENGINE_AUTODIFF_INPUT_TYPES_H_
#define TENSORD_ENGINE_AUTODIFF_INPUT_TYPES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/ir/graph.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// Types of inputs that take the place of a graph's values. Sizes that the run decides, which no caller can write, are
// symbols, the same for equal sizes.
class InputTypes {
 public:
  // Symbols of the graph's inputs are not given again.
  explicit InputTypes(const Graph& graph);

  TensorType Of(TensorType type);
  // Tells whether a type had a size that the run decides.
  bool has_replaced() const { return !by_size_.empty(); }

 private:
  absl::flat_hash_set<std::string> symbols_;
  absl::flat_hash_map<std::string, std::string> by_size_;
  int last_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_INPUT_TYPES_H_
