#ifndef TENSORD_SERVER_LIFECYCLE_CRASH_SIGNALS_H_
#define TENSORD_SERVER_LIFECYCLE_CRASH_SIGNALS_H_

#include <signal.h>

namespace tensord::server {

// Gives the process a last word: on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT `last_word` is called with the number
// of the signal, in its handler, so it may do what is safe there and no more. Once; then the signal does what it would
// have done without. `is_of_this_thread`: the calling thread did what the signal is about, and nobody sent it from
// outside. At most one object at a time; what `last_word` reads must outlive it.
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
