#include "server/lifecycle/stop_signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace tensord::server {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void StopSignals::Block() {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

StopSignals::StopSignals(std::function<void()> on_signal)
    : on_signal_(std::move(on_signal)), thread_([this] { Loop(); }) {}

StopSignals::~StopSignals() {
  stopping_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // ends its wait
  thread_.join();
}

void StopSignals::Loop() {
  const sigset_t signals = Signals();
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (stopping_) return;
    on_signal_();
  }
}

}  // namespace tensord::server
