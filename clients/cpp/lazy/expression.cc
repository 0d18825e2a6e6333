#include "clients/cpp/lazy/expression.h"

#include <atomic>
#include <utility>

namespace tensord::client {

Expression::~Expression() {
  std::vector<std::shared_ptr<const Expression>> pending = std::move(operands);
  while (!pending.empty()) {
    std::shared_ptr<const Expression> last = std::move(pending.back());
    pending.pop_back();
    if (last.use_count() != 1) continue;
    // Nobody else can see it any more; the fence orders this after the last accesses of other threads.
    std::atomic_thread_fence(std::memory_order_acquire);
    auto& orphans = const_cast<Expression&>(*last).operands;
    for (auto& orphan : orphans) pending.push_back(std::move(orphan));
    orphans.clear();
  }
}

}  // namespace tensord::client
