#ifndef TENSORD_TESTS_HOSTCUDA_HANDLES_H_
#define TENSORD_TESTS_HOSTCUDA_HANDLES_H_

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tensord::cuda::host {

// The objects of one kind that callers have handles of. A handle that was destroyed is known as such. Thread-safe.
template <typename T>
class Handles {
 public:
  T* Add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    T* const handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }

  // Returns null if there is no such object, or it was destroyed.
  std::shared_ptr<T> Find(T* handle) {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second;
  }

  std::shared_ptr<T> Take(T* handle) {
    std::lock_guard lock(mutex_);
    const auto node = objects_.extract(handle);
    return node.empty() ? nullptr : node.mapped();
  }

  std::vector<std::shared_ptr<T>> All() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (const auto& [handle, object] : objects_) all.push_back(object);
    return all;
  }

  // Destroys those of a context.
  template <typename Context>
  void Clear(const Context& context) {
    std::vector<std::shared_ptr<T>> gone;  // without the lock
    std::lock_guard lock(mutex_);
    for (auto it = objects_.begin(); it != objects_.end();) {
      if (it->second->context != &context) {
        ++it;
        continue;
      }
      gone.push_back(std::move(it->second));
      it = objects_.erase(it);
    }
  }

  size_t size() {
    std::lock_guard lock(mutex_);
    return objects_.size();
  }

 private:
  std::mutex mutex_;
  std::map<T*, std::shared_ptr<T>> objects_;
};

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HANDLES_H_
