#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_CONSTANT_BYTES_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_CONSTANT_BYTES_H_

#include <cstdint>

#include "engine/ir/graph.h"

namespace tensord {

// Returns the bytes of the literals in a graph's attributes, each as often as it stands there.
int64_t ConstantBytes(const Graph& graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_CONSTANT_BYTES_H_
