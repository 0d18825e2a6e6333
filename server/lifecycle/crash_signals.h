#ifndef TENSORD_SERVER_LIFECYCLE_CRASH_SIGNALS_H_
#define TENSORD_SERVER_LIFECYCLE_CRASH_SIGNALS_H_

#include <signal.h>

namespace tensord::server {

// Gives the process a last word: on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT `last_word` is called with the number
// of the signal, in its handler, so it may only do things that are safe there. Once; then the signal has its usual
// effect. `is_of_this_thread`: the calling thread caused the signal, and nobody sent it from outside. At most one
// object at a time; everything that `last_word` reads must outlive it.
class CrashSignals {
 public:
  using LastWord = void (*)(int signal, bool is_of_this_thread);

  explicit CrashSignals(LastWord last_word);
  ~CrashSignals();
  CrashSignals(const CrashSignals&) = delete;
  CrashSignals& operator=(const CrashSignals&) = delete;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_CRASH_SIGNALS_H_
