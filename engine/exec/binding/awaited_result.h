#ifndef TENSORD_ENGINE_EXEC_BINDING_AWAITED_RESULT_H_
#define TENSORD_ENGINE_EXEC_BINDING_AWAITED_RESULT_H_

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/exec/backend/backend.h"

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

  // Waits for the result. Ends early with the refusal of `check`, which is asked again and again meanwhile; null: it is
  // not stopped.
  absl::StatusOr<T> Wait(const RunCheck& check) {
    MutexLock lock(&mutex_);
    while (!result_.has_value()) {
      if (check == nullptr) {
        changed_.Wait(&mutex_);
        continue;
      }
      const absl::Status wanted = check();
      if (!wanted.ok()) return wanted;
      changed_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kBetweenChecks);
    }
    return *result_;
  }

 private:
  static constexpr std::chrono::milliseconds kBetweenChecks{5};

  Mutex mutex_;
  CondVar changed_;
  std::optional<absl::StatusOr<T>> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_AWAITED_RESULT_H_
