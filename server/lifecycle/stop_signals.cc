#include "server/lifecycle/stop_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace tensord::server {
namespace {

constexpr char kStop = 's';
constexpr char kReload = 'r';
constexpr char kEnd = 'e';

std::atomic<int> signal_pipe{-1};  // the write end; what a signal handler may reach is static
std::atomic<int> stops{0};         // that nobody has been told of; beside the pipe, which reloads may have filled
static_assert(std::atomic<int>::is_always_lock_free);

void OnSignal(int signal) {
  const int saved = errno;
  const char what = signal == SIGHUP ? kReload : kStop;
  if (what == kStop) ++stops;
  // A pipe that is full wakes the thread, and holds enough reloads already.
  [[maybe_unused]] const ssize_t written = write(signal_pipe.load(), &what, 1);
  errno = saved;
}

void SetHandler(void (*handler)(int), void (*of_reload)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = of_reload;
  sigaction(SIGHUP, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;  // out of descriptors: signals end the process at once, as without this
  read_end_ = ends[0];
  write_end_ = ends[1];
  fcntl(write_end_, F_SETFL, O_NONBLOCK);
  signal_pipe = write_end_;
  stops = 0;
  SetHandler(&OnSignal, &OnSignal);
}

void StopSignals::Deliver(std::function<void()> on_stop, std::function<void()> on_reload) {
  if (read_end_ < 0) return;
  on_stop_ = std::move(on_stop);
  on_reload_ = std::move(on_reload);
  thread_ = std::thread([this] { Loop(); });
}

StopSignals::~StopSignals() {
  if (read_end_ < 0) return;
  SetHandler(SIG_DFL, SIG_IGN);
  signal_pipe = -1;
  ending_ = true;
  if (thread_.joinable()) {
    // A write into a full pipe fails, and need not succeed: the bytes in it wake the thread too.
    while (write(write_end_, &kEnd, 1) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  close(read_end_);
  close(write_end_);
}

void StopSignals::Loop() {
  while (true) {
    char what = 0;
    const ssize_t count = read(read_end_, &what, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || ending_) return;
    for (; stops > 0; --stops) on_stop_();
    if (what == kReload) on_reload_();
  }
}

}  // namespace tensord::server
