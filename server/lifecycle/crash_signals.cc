#include "server/lifecycle/crash_signals.h"

#include <signal.h>
#include <stddef.h>

#include <atomic>

namespace tensord::server {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr size_t kNumSignals = sizeof(kSignals) / sizeof(kSignals[0]);

struct sigaction before[kNumSignals];  // what a signal handler may reach is static
std::atomic<void (*)(int)> said{nullptr};

void PutBack() {
  for (size_t i = 0; i < kNumSignals; ++i) sigaction(kSignals[i], &before[i], nullptr);
}

void OnSignal(int signal, siginfo_t* info, void* /*context*/) {
  // A second thread that crashes meanwhile, or the last word itself, must not begin again.
  void (*const last_word)(int) = said.exchange(nullptr);
  if (last_word != nullptr) last_word(signal);
  PutBack();
  // An instruction that faults does so again when this returns. What was sent, or raised by abort, does not; it is
  // blocked until then.
  const bool is_fault = info->si_code > 0;
  if (!is_fault) raise(signal);
}

}  // namespace

CrashSignals::CrashSignals(void (*last_word)(int signal)) {
  said = last_word;
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
