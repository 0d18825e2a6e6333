#ifndef TENSORD_SERVER_LIFECYCLE_SERVICE_NOTIFIER_H_
#define TENSORD_SERVER_LIFECYCLE_SERVICE_NOTIFIER_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// Tells the manager that started the server how it is: systemd's protocol of sd_notify(3), datagrams to a unix socket.
// Without such a manager nothing is sent. A datagram that cannot be sent is lost; nothing waits for it. Thread-safe.
class ServiceNotifier {
 public:
  struct Options {
    std::string socket;                              // a path, "@name" of an abstract socket, or empty: no manager
    absl::Duration watchdog = absl::ZeroDuration();  // it wants to hear of the server this often; zero: not
  };
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  static Options FromEnvironment();

  explicit ServiceNotifier(const Options& options) : options_(options) {}
  ~ServiceNotifier();
  ServiceNotifier(const ServiceNotifier&) = delete;
  ServiceNotifier& operator=(const ServiceNotifier&) = delete;

  bool is_there() const { return !options_.socket.empty(); }
  // Lines for people and for the manager.
  void Ready(absl::string_view status);
  void Stopping(absl::string_view status);

  // Calls `probe` twice a watchdog period from now on, from a thread of its own, and tells the manager that the server
  // lives whenever it returns. A probe that takes the locks that everybody needs hangs when the server does; the
  // manager then starts the server anew. Once at most; the things that the probe uses must outlive this.
  void Watch(std::function<void()> probe);

 private:
  void Send(absl::string_view message) const;
  void WatchLoop();

  const Options options_;
  std::function<void()> probe_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_SERVICE_NOTIFIER_H_
