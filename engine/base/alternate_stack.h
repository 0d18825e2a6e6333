#ifndef TENSORD_ENGINE_BASE_ALTERNATE_STACK_H_
#define TENSORD_ENGINE_BASE_ALTERNATE_STACK_H_

#include <cstddef>

namespace tensord {

// A stack for the signal handlers of the thread that makes and ends it. If the thread's own stack overflows, handlers
// have no other, and the process ends without a word. Does nothing if the thread has one, or the system gives none.
class AlternateStack {
 public:
  AlternateStack();
  ~AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_ALTERNATE_STACK_H_
