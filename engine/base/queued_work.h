#ifndef TENSORD_ENGINE_BASE_QUEUED_WORK_H_
#define TENSORD_ENGINE_BASE_QUEUED_WORK_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"

namespace tensord {

// Work that several tenants wait for: it is in the queue of each, and done once, when the first of them has its turn.
// So nobody waits in the queue of another who happened to ask first. Thread-safe; shared by those queues.
//
//   queued → begun; queued or begun → abandoned
class QueuedWork : public std::enable_shared_from_this<QueuedWork> {
 public:
  // Takes work out of a queue, where it waits still.
  using Drop = std::function<void()>;
  // Has the work done on another thread, or refuses to.
  using Submit = std::function<absl::StatusOr<Drop>(std::function<void()> work)>;

  // `work` is destroyed, with all it holds, when it is done or abandoned.
  explicit QueuedWork(std::function<void()> work) : work_(std::move(work)) {}

  // Puts it into a tenant's queue too. Does nothing if it is there already, or not queued any more.
  absl::Status QueueFor(const std::string& tenant, const Submit& submit);
  // Abandons work that nobody waits for any more: it does not begin, or the StopSignal under which it is done says so.
  void Abandon();

 private:
  struct Place {
    std::string tenant;
    Drop drop;
  };

  void Do(const std::string& tenant);

  std::atomic<bool> abandoned_{false};
  Mutex mutex_;
  std::function<void()> work_ ABSL_GUARDED_BY(mutex_);  // null: not queued any more
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_QUEUED_WORK_H_
