#ifndef TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_
#define TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_

#include <atomic>
#include <functional>
#include <thread>

namespace tensord::server {

// Takes SIGTERM and SIGINT as requests to stop, on a thread of its own, so that what they start need not be safe in a
// signal handler. Block() comes first, in main and before any other thread is made: threads inherit it.
class StopSignals {
 public:
  static void Block();

  // Calls `on_signal` once a signal, from the thread, until destroyed.
  explicit StopSignals(std::function<void()> on_signal);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void Loop();

  const std::function<void()> on_signal_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_
