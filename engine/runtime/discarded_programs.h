#ifndef TENSORD_ENGINE_RUNTIME_DISCARDED_PROGRAMS_H_
#define TENSORD_ENGINE_RUNTIME_DISCARDED_PROGRAMS_H_

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/runtime/compiled_program.h"

namespace tensord {

// Where programs go that a cache has forgotten: a thread lets go of them, since taking a large one apart takes
// milliseconds that neither a call nor the cache's lock has, and returns their memory to the system once that is worth
// it. Owned by the cache; the programs' backends must outlive it. Thread-safe. Where kMostWaiting programs wait, the
// next ones are let go of by who brings them.
class DiscardedPrograms {
 public:
  static constexpr size_t kMostWaiting = 4096;
  static constexpr int64_t kReturnedBytes = int64_t{64} << 20;

  // `give_back` is called when that much, or more, was let go of; null: ReturnFreedMemory.
  explicit DiscardedPrograms(std::function<void()> give_back = nullptr);
  ~DiscardedPrograms();

  // `bytes` is what the program held.
  void Add(CompiledProgramPtr program, int64_t bytes);

 private:
  void Loop();

  const std::function<void()> give_back_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<CompiledProgramPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // let go of since memory was returned
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DISCARDED_PROGRAMS_H_
