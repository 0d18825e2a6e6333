#ifndef TENSORD_ENGINE_EXEC_BINDING_AWAITED_RESULT_H_
#define TENSORD_ENGINE_EXEC_BINDING_AWAITED_RESULT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord {

// The result of another thread's work, for those who wait for it. Set once; thread-safe.
template <typename T>
class AwaitedResult {
 public:
  void Set(const absl::StatusOr<T>& result) {
    MutexLock lock(&mutex_);
    result_ = result;
    changed_.Signal();
  }

  // Waits for the result. Ends early with the refusal of the thread's StopSignal, which is asked meanwhile.
  absl::StatusOr<T> Wait() {
    MutexLock lock(&mutex_);
    while (!result_.has_value()) RETURN_IF_ERROR(WaitUnlessStopped(&changed_, &mutex_));
    return *result_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<absl::StatusOr<T>> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_AWAITED_RESULT_H_
