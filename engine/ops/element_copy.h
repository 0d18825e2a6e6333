#ifndef TENSORD_ENGINE_OPS_ELEMENT_COPY_H_
#define TENSORD_ENGINE_OPS_ELEMENT_COPY_H_

#include <cstdint>
#include <cstring>

#include "engine/tensor/literal.h"

namespace tensord {

// One element of `from` to a place of `to`, which has the same dtype; both counted in storage order.
inline void CopyElement(const Literal& from, int64_t from_index, Literal* to, int64_t to_index) {
  const int64_t size = SizeOf(from.dtype());
  std::memcpy(to->mutable_data() + to_index * size, from.bytes().data() + from_index * size, static_cast<size_t>(size));
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_ELEMENT_COPY_H_
