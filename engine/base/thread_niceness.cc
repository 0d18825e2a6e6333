#include "engine/base/thread_niceness.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tensord {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNicest = 19;
constexpr auto kGiveWayEvery = std::chrono::microseconds(300);  // a yield to nobody takes half a microsecond

enum class Niceness : uint8_t { kUnknown, kNone, kSome };

thread_local Niceness t_niceness = Niceness::kUnknown;  // it may have been inherited
thread_local Clock::time_point t_gave_way;

// Linux keeps niceness by thread; these calls take a thread's id for a process's.
id_t ThisThread() { return static_cast<id_t>(syscall(SYS_gettid)); }

// The argument of the system call; glibc has it from 2.41 on.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t slice_ns = 0;  // the system calls it the runtime
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

// Asks for short slices. A yield costs the rest of a slice, since Linux 6.18 for good: beside a thread that never
// sleeps, a thread with the usual slices would get next to nothing. Before 6.12 the request is accepted and changes
// nothing.
void ShortenSlices(int niceness) {
  if (sched_getscheduler(0) != SCHED_OTHER) return;
  constexpr uint64_t kShortestNs = 100'000;  // what Linux takes at least
  const SchedulingAttributes attributes = {.nice = niceness, .slice_ns = kShortestNs};
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

Niceness ReadNiceness() { return getpriority(PRIO_PROCESS, ThisThread()) > 0 ? Niceness::kSome : Niceness::kNone; }

}  // namespace

int LowerThisThread(int by) {
  const id_t thread = ThisThread();
  const int before = getpriority(PRIO_PROCESS, thread);
  const int after = std::min(kNicest, before + by);
  if (setpriority(PRIO_PROCESS, thread, after) != 0) return before;
  ShortenSlices(after);
  t_niceness = ReadNiceness();
  return after;
}

void GiveWay() {
  if (t_niceness == Niceness::kUnknown) t_niceness = ReadNiceness();
  if (t_niceness == Niceness::kNone) return;
  const Clock::time_point now = Clock::now();
  if (now - t_gave_way < kGiveWayEvery) return;
  sched_yield();
  t_gave_way = Clock::now();
}

}  // namespace tensord
