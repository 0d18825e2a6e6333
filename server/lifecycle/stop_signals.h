#ifndef TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_
#define TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_

#include <functional>
#include <thread>

namespace tensord::server {

// Takes SIGTERM and SIGINT as requests to stop, and SIGHUP as one to read the configuration again, on a thread of its
// own, so that what they start need not be safe in a signal handler. The handler writes into a pipe: blocking the
// signals and waiting for them would miss those that reach a thread which a library started before main. At most one
// object at a time.
class StopSignals {
 public:
  // From now on signals are kept; once it is destroyed they act as they did before.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Calls `on_stop` or `on_reload` once a signal, those first that were kept, from the thread, until destroyed. Once.
  void Deliver(std::function<void()> on_stop, std::function<void()> on_reload);

 private:
  void Loop();

  std::function<void()> on_stop_;
  std::function<void()> on_reload_;
  int read_end_ = -1;
  int write_end_ = -1;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_STOP_SIGNALS_H_
