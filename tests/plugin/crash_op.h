#ifndef TENSORD_TESTS_PLUGIN_CRASH_OP_H_
#define TENSORD_TESTS_PLUGIN_CRASH_OP_H_

#include <cstdint>

namespace crash {

// The ways of the op crash.v1.Crash, on vectors of F32.
enum How : int64_t {
  kDivides = 0,   // SIGFPE
  kWrites = 1,    // SIGSEGV
  kAborts = 2,    // SIGABRT
  kRecurses = 3,  // SIGSEGV, and no stack is left
  kHelpers = 4,   // SIGSEGV on each thread of the pool but the one that runs the program
  kWaits = 5,     // for the end of the process
};

// The environment variable without which no kernel's factory crashes.
inline constexpr char kCrashesWhenMade[] = "TENSORD_TEST_CRASHES";

}  // namespace crash

#endif  // TENSORD_TESTS_PLUGIN_CRASH_OP_H_
