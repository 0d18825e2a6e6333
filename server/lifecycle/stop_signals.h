#ifndef TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_
#define TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_

#include <atomic>
#include <functional>
#include <thread>

namespace tensord::server {

// Takes SIGTERM and SIGINT as requests to stop, and SIGHUP as one to read the configuration again, on a thread of its
// own, so that the code they start need not be safe in a signal handler. The handler writes into a pipe. Blocking the
// signals and waiting for them would not do: a library's thread from before main could receive them. At most one object
// at a time.
class StopSignals {
 public:
  // Keeps signals from now on. Once it is destroyed, those to stop end the process, and SIGHUP does nothing: there is
  // nothing left to reload.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Calls `on_stop` once a signal, earlier kept signals first, from the thread, until destroyed. Calls `on_reload`
  // likewise, but after all stops, and not once for each if there are more than a pipe holds. Once.
  void Deliver(std::function<void()> on_stop, std::function<void()> on_reload);

 private:
  void Loop();

  std::atomic<bool> ending_{false};
  std::function<void()> on_stop_;
  std::function<void()> on_reload_;
  int read_end_ = -1;
  int write_end_ = -1;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_
