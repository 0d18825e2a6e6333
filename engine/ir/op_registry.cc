#include "engine/ir/op_registry.h"

namespace tensord {

OpRegistry::OpRegistry(absl::Span<const absl::Span<const OpDef>> families) {
  for (absl::Span<const OpDef> family : families) {
    for (const OpDef& op : family) {
      all_.push_back(&op);
      by_name_.emplace(op.name, &op);
    }
  }
}

const OpDef* OpRegistry::Find(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

}  // namespace tensord
