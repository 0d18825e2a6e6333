#ifndef TENSORD_BACKENDS_CPU_MACHINE_TASK_SLOTS_H_
#define TENSORD_BACKENDS_CPU_MACHINE_TASK_SLOTS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {

// Returns the number of parts of a kernel's memory worth having for tasks that each need one: as many as may run at a
// time.
inline int64_t TaskSlots(int64_t tasks) { return std::min(tasks, std::clamp<int64_t>(MachineCores(), 2, 64)); }

// Calls task(index, slot) for each index below `tasks`: no two at a time have the same slot below `slots`, and a thread
// that goes on keeps its own. False as ThreadPool::ParallelFor.
template <typename Task>
bool RunInSlots(int64_t tasks, int64_t slots, ThreadPool& pool, const Task& task) {
  if (tasks == 1) {
    task(int64_t{0}, int64_t{0});
    return !StopRequested();
  }
  std::atomic<int64_t> next{0};
  return pool.ParallelFor(std::min(slots, tasks), [&](int64_t slot) {
    while (true) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= tasks || StopRequested()) return;
      task(index, slot);
    }
  });
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_TASK_SLOTS_H_
