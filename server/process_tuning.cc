#include "server/process_tuning.h"

#include "absl/synchronization/mutex.h"
#include "engine/base/allocator_tuning.h"

namespace tensord::server {

void TuneProcess() {
  TuneAllocator();
  // Debian's Abseil looks for cycles at every lock, gRPC's too; the tests, which start servers of their own, keep that.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace tensord::server
