#ifndef TENSORD_ENGINE_EXEC_MEMORY_MEMORY_BUDGET_H_
#define TENSORD_ENGINE_EXEC_MEMORY_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>

namespace tensord {

// A bound on bytes that all who take them share. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t used_bytes() const { return used_bytes_; }

  // Takes bytes, which Give gives back. False, and nothing is taken, if there are not so many left.
  bool Take(int64_t bytes) {
    int64_t used = used_bytes_;
    do {
      if (bytes > limit_bytes_ - used) return false;
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void Give(int64_t bytes) { used_bytes_ -= bytes; }

 private:
  const int64_t limit_bytes_;
  std::atomic<int64_t> used_bytes_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_MEMORY_BUDGET_H_
