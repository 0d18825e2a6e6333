#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_SEARCH_WORK_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_SEARCH_WORK_H_

#include <cstddef>
#include <cstdint>

#include "engine/base/stop_signal.h"

namespace tensord {

// The work of searches, in steps of a few nanoseconds, and its limit. Counted and not timed, so that a search ends at
// the same place everywhere. Thread-compatible.
class SearchWork {
 public:
  explicit SearchWork(int64_t most) : left_(most) {}

  void Add(int64_t steps) {
    done_ += steps;
    left_ -= steps;
  }
  void Add(size_t steps) { Add(static_cast<int64_t>(steps)); }
  // Or nobody wants the search any more.
  bool is_used_up() const { return left_ <= 0 || StopRequested(); }
  int64_t left() const { return left_; }
  int64_t done() const { return done_; }

 private:
  int64_t left_;
  int64_t done_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_SEARCH_WORK_H_
