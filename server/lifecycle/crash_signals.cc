#include "server/lifecycle/crash_signals.h"

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace tensord::server {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr size_t kNumSignals = sizeof(kSignals) / sizeof(kSignals[0]);

struct sigaction before[kNumSignals];  // what a signal handler may reach is static
std::atomic<CrashSignals::LastWord> said{nullptr};
std::atomic<pid_t> speaker{0};  // the thread that says the last word

void PutBack() {
  for (size_t i = 0; i < kNumSignals; ++i) sigaction(kSignals[i], &before[i], nullptr);
}

void OnSignal(int signal, siginfo_t* info, void* /*context*/) {
  // The last word itself must not begin again; a second thread that crashes meanwhile must not end the process before
  // it is said.
  const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
  const bool is_fault = info->si_code > 0;
  pid_t first = 0;
  if (speaker.compare_exchange_strong(first, thread)) {
    if (const CrashSignals::LastWord last_word = said.exchange(nullptr); last_word != nullptr) {
      last_word(signal, is_fault || info->si_pid == getpid());
    }
  } else if (first != thread) {
    while (true) pause();
  }
  PutBack();
  // A faulting instruction faults again when this returns. A signal that was sent, or raised by abort, does not come
  // again; it is blocked until then.
  if (!is_fault) raise(signal);
}

}  // namespace

CrashSignals::CrashSignals(LastWord last_word) {
  said = last_word;
  speaker = 0;
  struct sigaction action {};
  action.sa_sigaction = &OnSignal;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kNumSignals; ++i) sigaction(kSignals[i], &action, &before[i]);
}

CrashSignals::~CrashSignals() {
  PutBack();
  said = nullptr;
}

}  // namespace tensord::server
