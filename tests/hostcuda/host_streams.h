#ifndef TENSORD_TESTS_HOSTCUDA_HOST_STREAMS_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_STREAMS_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/abi/driver.h"
#include "tests/hostcuda/handles.h"
#include "tests/hostcuda/host_context.h"

namespace tensord::cuda {
namespace host {

using Work = std::function<void()>;

// A place in a stream, for those who wait until the stream has come there. Thread-safe.
class Mark {
 public:
  void Set();
  void Wait();
  bool IsSet();
  std::chrono::steady_clock::time_point time();

 private:
  std::mutex mutex_;
  std::condition_variable is_set_;
  bool set_ = false;
  std::chrono::steady_clock::time_point time_;
};

// Returns work of the device that is done guarded, and not at all once the context has an error.
Work DeviceWork(std::string what, Work work);

}  // namespace host

struct CuGraphObject {
  host::Context* const context = &host::Context::Get();  // that of the thread that made it
  std::vector<host::Work> nodes;
};

// A graph that can run: one run of it at a time.
struct CuGraphExecObject {
  host::Context* const context = &host::Context::Get();  // that of the thread that made it
  std::mutex running;
  std::vector<host::Work> nodes;
};

struct CuEventObject {
  host::Context* const context = &host::Context::Get();  // that of the thread that made it
  bool has_time = true;
  std::mutex mutex;
  std::shared_ptr<host::Mark> mark;  // of the last record
};

// A stream: a thread that does one piece of work after the other, each after a delay by chance. While it captures, work
// goes to a graph instead. Thread-safe.
struct CuStreamObject {
 public:
  CuStreamObject();
  ~CuStreamObject();  // when all is done

  host::Context* const context = &host::Context::Get();  // that of the thread that made it

  // Adds work, or a node. Refuses if the capture is spoilt.
  CuResult Push(host::Work work);
  CuResult Enqueue(std::string what, host::Work work) {
    return Push(host::DeviceWork(std::move(what), std::move(work)));
  }
  void Drain();
  bool IsIdle();

  CuResult BeginCapture(int mode);
  CuResult EndCapture(std::shared_ptr<CuGraphObject>* graph);
  // Returns a CaptureStatus.
  int capture_status();
  // Tells whether it captures: then the call that asks is not allowed, and spoils the capture.
  bool RefusesInCapture();
  // The same for a call that has nothing to do with this stream, but may wait for the device.
  bool ForbidsThisThread();

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<host::Work> queue_;
  bool is_busy_ = false, is_stopping_ = false;
  std::shared_ptr<CuGraphObject> capture_;
  bool is_capture_spoilt_ = false;
  int capture_mode_ = 0;
  std::thread::id capturing_thread_;
  std::mt19937_64 random_;
  std::thread thread_;
};

namespace host {

Handles<CuStreamObject>& Streams();
Handles<CuEventObject>& Events();
Handles<CuGraphObject>& Graphs();
Handles<CuGraphExecObject>& GraphExecs();

// Waits for all streams of a context.
void DrainStreams(const Context& context);

// Tells whether a capture forbids this thread to call what may wait for the device: then the call spoils it.
bool CaptureForbids();

}  // namespace host
}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_STREAMS_H_
