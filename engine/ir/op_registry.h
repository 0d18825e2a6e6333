#ifndef TENSORD_ENGINE_IR_OP_REGISTRY_H_
#define TENSORD_ENGINE_IR_OP_REGISTRY_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/op_def.h"

namespace tensord {

// The ops that a process knows, by name. Built once, immutable afterwards, so thread-safe. The op definitions outlive
// it: they are constants of their families.
class OpRegistry {
 public:
  explicit OpRegistry(absl::Span<const absl::Span<const OpDef>> families);

  // nullptr if there is none.
  const OpDef* Find(absl::string_view name) const;
  const std::vector<const OpDef*>& all() const { return all_; }

 private:
  std::vector<const OpDef*> all_;
  absl::flat_hash_map<absl::string_view, const OpDef*> by_name_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_OP_REGISTRY_H_
