#include "engine/exec/binding_cache.h"

#include <utility>

#include "engine/base/status_macros.h"

namespace tensord {

absl::StatusOr<std::shared_ptr<const BoundProgram>> BindingCache::FindOrMake(const BindingKey& key, const Make& make) {
  {
    MutexLock lock(&mutex_);
    for (auto it = bindings_.begin(); it != bindings_.end(); ++it) {
      if (!(it->key == key)) continue;
      bindings_.splice(bindings_.begin(), bindings_, it);
      return it->bound;
    }
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundProgram> bound, make());
  MutexLock lock(&mutex_);
  bindings_.push_front({.key = key, .bound = bound});
  if (bindings_.size() > kMaxBindings) bindings_.pop_back();
  return bound;
}

}  // namespace tensord
