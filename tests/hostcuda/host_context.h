#ifndef TENSORD_TESTS_HOSTCUDA_HOST_CONTEXT_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_CONTEXT_H_

#include <atomic>
#include <mutex>

#include "backends/cuda/abi/driver.h"

namespace tensord::cuda {

namespace host {
class Context;
}  // namespace host

struct CuContextObject {
  host::Context* const owner;
};

namespace host {

inline constexpr int kMostDevices = 8;

// A device's primary context, and its error: one that a kernel has made stays until the context is made anew. States:
// none → live (Retain) → live with an error (Fail) → none (Destroy). Thread-safe.
class Context {
 public:
  // Returns that of a device, of kMostDevices.
  static Context& Of(int device);
  // Returns that of the calling thread: the one that it has set, or the one that its stream is of; else the first.
  static Context& Get();

  int device() const;
  static void Initialize() { is_initialized_ = true; }
  CuContext Retain();
  // Returns true if nobody retains it any more.
  bool Release();
  // Ends it. Threads for which it is current have none then.
  void Destroy();

  static CuResult SetCurrent(CuContext context);
  // Returns the context that the calling thread has set, or null.
  static CuContext Current();
  // Has the calling thread, one of a stream, work in this context.
  void Adopt() const;
  static bool is_initialized() { return is_initialized_; }
  bool is_current() const;

  CuResult error() const { return error_; }
  void Fail(CuResult error);

 private:
  std::mutex mutex_;
  static inline std::atomic<bool> is_initialized_{false};
  std::atomic<CuContext> live_{nullptr};
  long retained_ = 0;
  std::atomic<CuResult> error_{kCuSuccess};
};

// Begins a call of the driver's function that needs a context: counts it, lets it fail if a test wants that, and
// refuses it if the calling thread has no context or the context has an error.
CuResult EnterContext(const char* function);
// The same for functions that need no context.
CuResult EnterDriver(const char* function);

}  // namespace host
}  // namespace tensord::cuda

#define HOST_ENTER_CONTEXT()                                                                                 \
  if (const ::tensord::cuda::CuResult entered = ::tensord::cuda::host::EnterContext(__func__); entered != 0) \
  return entered
#define HOST_ENTER_DRIVER()                                                                                 \
  if (const ::tensord::cuda::CuResult entered = ::tensord::cuda::host::EnterDriver(__func__); entered != 0) \
  return entered

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_CONTEXT_H_
