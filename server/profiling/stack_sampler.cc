#include "server/profiling/stack_sampler.h"

#include <sys/time.h>
#include <ucontext.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>

namespace tensord::server {
namespace {

// The handler's view. The handler may still be called, or be running, when nobody samples any more.
struct Recording {
  std::atomic<uintptr_t*> words{nullptr};  // null: nothing is noted
  std::atomic<size_t> room{0};
  std::atomic<size_t> used{0};  // beyond the room where some did not fit
  std::atomic<int64_t> count{0};
  std::atomic<int64_t> dropped{0};
  std::atomic<int> inside{0};  // handlers that may write
};
Recording recording;
std::atomic<bool> is_taken{false};
static_assert(std::atomic<uintptr_t*>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

uintptr_t InterruptedAt(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(machine.pc);
#else
#error "where a signal interrupted a thread is not known of this processor"
#endif
}

// The frames of a thread from the interrupted one on: those of the handler come before.
struct Walk {
  uintptr_t interrupted = 0;
  bool is_found = false;
  size_t depth = 0;
  uintptr_t counters[StackSampler::kMaxDepth];
};

_Unwind_Reason_Code Visit(_Unwind_Context* frame, void* argument) {
  auto* walk = static_cast<Walk*>(argument);
  const auto counter = static_cast<uintptr_t>(_Unwind_GetIP(frame));
  if (!walk->is_found && counter != walk->interrupted) return _URC_NO_REASON;
  walk->is_found = true;
  if (counter == 0) return _URC_END_OF_STACK;
  walk->counters[walk->depth++] = counter;
  return walk->depth == StackSampler::kMaxDepth ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void Note(uintptr_t* words, uintptr_t interrupted) {
  Walk walk;
  walk.interrupted = interrupted;
  _Unwind_Backtrace(&Visit, &walk);
  if (!walk.is_found) walk.counters[walk.depth++] = interrupted;  // in code that says nothing of its frames
  const size_t at = recording.used.fetch_add(walk.depth + 1, std::memory_order_relaxed);
  if (at + walk.depth + 1 > recording.room.load(std::memory_order_relaxed)) {
    recording.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  words[at] = walk.depth;
  std::copy_n(walk.counters, walk.depth, words + at + 1);
  recording.count.fetch_add(1, std::memory_order_relaxed);
}

void OnSignal(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const int error = errno;
  // In this order, against Disarm's: who sees the words is seen inside.
  recording.inside.fetch_add(1);
  uintptr_t* const words = recording.words.load();
  if (words != nullptr) Note(words, InterruptedAt(context));
  recording.inside.fetch_sub(1);
  errno = error;
}

void SetTimer(int per_second) {
  itimerval timer{};
  // A microsecond less than a second is the most that the field takes.
  if (per_second > 0) timer.it_interval.tv_usec = std::min(999'999, std::max(1, 1'000'000 / per_second));
  timer.it_value = timer.it_interval;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

// For the life of the process: a signal that comes late would end it otherwise.
void InstallHandler() {
  struct sigaction action {};
  action.sa_sigaction = &OnSignal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigfillset(&action.sa_mask);
  sigaction(SIGPROF, &action, nullptr);
}

}  // namespace

std::unique_ptr<StackSampler> StackSampler::Start(int per_second, size_t room) {
  if (is_taken.exchange(true)) return nullptr;
  static const bool installed = (InstallHandler(), true);
  (void)installed;
  // The unwinder sets itself up the first time, which may take memory.
  Walk walk;
  _Unwind_Backtrace(&Visit, &walk);
  std::unique_ptr<StackSampler> sampler(new StackSampler(room));
  recording.room = room;
  recording.used = 0;
  recording.count = 0;
  recording.dropped = 0;
  recording.words = sampler->words_.data();
  SetTimer(per_second);
  return sampler;
}

void StackSampler::Disarm() {
  SetTimer(0);
  recording.words = nullptr;
  while (recording.inside.load() > 0) std::this_thread::yield();
  is_armed_ = false;
}

StackSampler::~StackSampler() {
  if (!is_armed_) return;
  Disarm();
  is_taken = false;
}

StackSampler::Stacks StackSampler::Stop() {
  Disarm();
  Stacks stacks{.words = {}, .count = recording.count, .dropped = recording.dropped};
  words_.resize(std::min(recording.used.load(), words_.size()));
  // The memory behind a stack that did not fit was never written: stop there.
  size_t end = 0;
  for (int64_t i = 0; i < stacks.count; ++i) end += words_[end] + 1;
  words_.resize(end);
  stacks.words = std::move(words_);
  is_taken = false;
  return stacks;
}

}  // namespace tensord::server
