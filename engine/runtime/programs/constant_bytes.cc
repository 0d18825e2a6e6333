#include "engine/runtime/programs/constant_bytes.h"

namespace tensord {

int64_t ConstantBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    for (size_t i = 0; i < node.attrs.schema().size(); ++i) {
      const LiteralPtr* const literal = std::get_if<LiteralPtr>(&node.attrs.at(i));
      if (literal != nullptr && *literal != nullptr) bytes += static_cast<int64_t>((*literal)->bytes().size());
    }
  }
  return bytes;
}

}  // namespace tensord
