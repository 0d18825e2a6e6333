#include "engine/base/thread_niceness.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace tensord {
namespace {

constexpr int kNicest = 19;

}  // namespace

// Linux keeps niceness by thread; setpriority takes a thread's id for a process's.
int LowerThisThread(int by) {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  const int before = getpriority(PRIO_PROCESS, thread);
  const int after = std::min(kNicest, before + by);
  return setpriority(PRIO_PROCESS, thread, after) == 0 ? after : before;
}

}  // namespace tensord
