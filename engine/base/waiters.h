#ifndef TENSORD_ENGINE_BASE_WAITERS_H_
#define TENSORD_ENGINE_BASE_WAITERS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tensord {

// The waiters for one thing; each waits until it comes or the waiter leaves. Thread-compatible.
template <typename Waiter>
class Waiters {
 public:
  // Returns the id to leave by.
  uint64_t Join(Waiter waiter) {
    waiting_.emplace_back(++last_, std::move(waiter));
    return last_;
  }
  // Returns nothing if the waiter has left already.
  std::optional<Waiter> Leave(uint64_t id) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [id](const auto& w) { return w.first == id; });
    if (found == waiting_.end()) return std::nullopt;
    std::optional<Waiter> waiter = std::move(found->second);
    waiting_.erase(found);
    return waiter;
  }
  // Takes all waiters in the order in which they came.
  std::vector<Waiter> TakeAll() {
    std::vector<Waiter> all;
    for (auto& [id, waiter] : std::exchange(waiting_, {})) all.push_back(std::move(waiter));
    return all;
  }
  bool empty() const { return waiting_.empty(); }

 private:
  uint64_t last_ = 0;
  std::vector<std::pair<uint64_t, Waiter>> waiting_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_WAITERS_H_
