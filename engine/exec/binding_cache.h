#ifndef TENSORD_ENGINE_EXEC_BINDING_CACHE_H_
#define TENSORD_ENGINE_EXEC_BINDING_CACHE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/exec/bound_program.h"

namespace tensord {

// What all sizes of a program follow from.
struct BindingKey {
  std::vector<ConcreteType> arguments;
  std::vector<int64_t> run_time_sizes;
  friend bool operator==(const BindingKey&, const BindingKey&) = default;
};

// What one program became for the sizes that were used last, kMaxBindings of them: `Bound` is a pointer to something
// shared. Thread-safe.
template <typename Bound>
class BindingCache {
 public:
  static constexpr size_t kMaxBindings = 16;

  using Make = std::function<absl::StatusOr<Bound>()>;
  // What `make` refuses is not kept. Two threads may make one binding, and either serves.
  absl::StatusOr<Bound> FindOrMake(const BindingKey& key, const Make& make) {
    {
      MutexLock lock(&mutex_);
      for (auto it = bindings_.begin(); it != bindings_.end(); ++it) {
        if (!(it->key == key)) continue;
        bindings_.splice(bindings_.begin(), bindings_, it);
        return it->bound;
      }
    }
    absl::StatusOr<Bound> bound = make();
    if (!bound.ok()) return bound;
    MutexLock lock(&mutex_);
    bindings_.push_front({.key = key, .bound = *bound});
    if (bindings_.size() > kMaxBindings) bindings_.pop_back();
    return bound;
  }

  // The sum of measure(bound) over what is kept.
  template <typename Measure>
  int64_t SumOf(const Measure& measure) const {
    MutexLock lock(&mutex_);
    int64_t sum = 0;
    for (const Binding& binding : bindings_) sum += measure(binding.bound);
    return sum;
  }

 private:
  struct Binding {
    BindingKey key;
    Bound bound;
  };

  mutable Mutex mutex_;
  std::list<Binding> bindings_ ABSL_GUARDED_BY(mutex_);  // most recently used first
};

using BoundProgramCache = BindingCache<std::shared_ptr<const BoundProgram>>;

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_CACHE_H_
