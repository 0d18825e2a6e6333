#include "server/lifecycle/service_notifier.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

ServiceNotifier::Options ServiceNotifier::FromEnvironment() {
  Options options = {.socket = Environment("NOTIFY_SOCKET")};
  int64_t micros = 0, process = 0;
  const std::string meant_for = Environment("WATCHDOG_PID");
  const bool is_ours = meant_for.empty() || (absl::SimpleAtoi(meant_for, &process) && process == getpid());
  if (is_ours && absl::SimpleAtoi(Environment("WATCHDOG_USEC"), &micros) && micros > 0) {
    options.watchdog = absl::Microseconds(micros);
  }
  return options;
}

ServiceNotifier::~ServiceNotifier() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  if (watcher_.joinable()) watcher_.join();
}

void ServiceNotifier::Ready(absl::string_view status) { Send(absl::StrCat("READY=1\nSTATUS=", status)); }

void ServiceNotifier::Stopping(absl::string_view status) { Send(absl::StrCat("STOPPING=1\nSTATUS=", status)); }

void ServiceNotifier::Watch(std::function<void()> probe) {
  if (!is_there() || options_.watchdog <= absl::ZeroDuration() || watcher_.joinable()) return;
  probe_ = std::move(probe);
  watcher_ = std::thread([this] { WatchLoop(); });
}

void ServiceNotifier::WatchLoop() {
  const auto period = absl::ToChronoNanoseconds(options_.watchdog / 2);
  auto next = std::chrono::steady_clock::now();
  while (true) {
    probe_();
    Send("WATCHDOG=1");
    next += period;
    MutexLock lock(&mutex_);
    while (!stopping_ && changed_.WaitUntil(&mutex_, next)) {
    }
    if (stopping_) return;
  }
}

void ServiceNotifier::Send(absl::string_view message) const {
  if (!is_there()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options_.socket.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, options_.socket.data(), options_.socket.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + options_.socket.size());
  [[maybe_unused]] const ssize_t sent =
      sendto(fd, message.data(), message.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
  close(fd);
}

}  // namespace tensord::server
