#ifndef TENSORD_ENGINE_BASE_AT_H_
#define TENSORD_ENGINE_BASE_AT_H_

#include <cstddef>
#include <cstdint>

namespace tensord {

// Returns the place in a list of something that has a number there: a slot, an instruction, a node.
constexpr size_t At(int64_t index) { return static_cast<size_t>(index); }

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_AT_H_
