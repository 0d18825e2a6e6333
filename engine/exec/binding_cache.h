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

// The bindings of one program that were used last, kMaxBindings of them. Thread-safe.
class BindingCache {
 public:
  static constexpr size_t kMaxBindings = 16;

  using Make = std::function<absl::StatusOr<std::shared_ptr<const BoundProgram>>()>;
  // What `make` refuses is not kept. Two threads may make one binding, and either serves.
  absl::StatusOr<std::shared_ptr<const BoundProgram>> FindOrMake(const BindingKey& key, const Make& make);

 private:
  struct Binding {
    BindingKey key;
    std::shared_ptr<const BoundProgram> bound;
  };

  Mutex mutex_;
  std::list<Binding> bindings_ ABSL_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_CACHE_H_
