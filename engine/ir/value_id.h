#ifndef TENSORD_ENGINE_IR_VALUE_ID_H_
#define TENSORD_ENGINE_IR_VALUE_ID_H_

#include <cstdint>

namespace tensord {

// A value of a graph: the inputs come first, in order, then the results of the nodes, in order.
struct ValueId {
  int32_t index = -1;

  bool is_set() const { return index >= 0; }
  friend bool operator==(ValueId, ValueId) = default;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_VALUE_ID_H_
