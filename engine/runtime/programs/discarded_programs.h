#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_DISCARDED_PROGRAMS_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_DISCARDED_PROGRAMS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/runtime/compile/compiled_program.h"

namespace tensord {

// The programs that a cache has forgotten. A thread releases them, because taking a large one apart takes milliseconds,
// too long for a call or the cache's lock, and returns their memory to the system once that is worth it. Owned by the
// cache; the programs' backends must outlive it. Thread-safe. If kMostWaiting programs wait, the caller releases the
// next ones itself.
class DiscardedPrograms {
 public:
  static constexpr size_t kMostWaiting = 4096;
  static constexpr int64_t kReturnedBytes = int64_t{64}
                                            << 20;  // let go of, after which the allocator returns its pages
  static constexpr std::chrono::seconds kReturnEvery{10};

  // `give_back` is called when kReturnedBytes or more were let go of, and at most every so often, since allocations
  // wait for it; null: ReturnFreedMemory.
  explicit DiscardedPrograms(std::function<void()> give_back = nullptr,
                             std::chrono::milliseconds return_every = kReturnEvery);
  ~DiscardedPrograms();

  // Adds a program; `bytes` is its size.
  void Add(CompiledProgramPtr program, int64_t bytes);
  // Counts memory that another let go of, so that it is returned likewise.
  void LetGo(int64_t bytes);

 private:
  void Loop();
  // Waits until there are programs to let go of, or memory is to be returned; false at the end.
  bool Await(std::vector<CompiledProgramPtr>* programs, bool* returns);

  const std::function<void()> give_back_;
  const std::chrono::milliseconds return_every_;
  std::chrono::steady_clock::time_point next_return_{};  // the thread's
  Mutex mutex_;
  CondVar changed_;
  std::vector<CompiledProgramPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // let go of since memory was returned
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_DISCARDED_PROGRAMS_H_
