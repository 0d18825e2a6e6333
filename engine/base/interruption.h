#ifndef TENSORD_ENGINE_BASE_INTERRUPTION_H_
#define TENSORD_ENGINE_BASE_INTERRUPTION_H_

#include <atomic>

#include "absl/status/status.h"

namespace tensord {

// While one exists, long work on this thread may be broken off: whatever it calls, however deep, asks now and then
// whether the flag is set, and returns early. Not a parameter, since nearly all of the compiler would have to hand it
// on. Scopes nest; the innermost counts. Confined to its thread; the flag may be set by any, and must outlive it.
class Interruptible {
 public:
  explicit Interruptible(const std::atomic<bool>* interrupted);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const std::atomic<bool>* const outer_;
};

// Whether to return early, with a result that is of no use but can be destroyed: whoever may fail asks again. Costs
// two loads. False where nothing on this thread may be broken off.
bool IsInterrupted();
// CANCELLED where it is so.
absl::Status CheckInterrupted();

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_INTERRUPTION_H_
