#include "engine/exec/binding/bound_constants.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord {

absl::StatusOr<BoundConstants::Buffers> BoundConstants::Get() {
  {
    MutexLock lock(&mutex_);
    while (true) {
      const auto is_lost = [](const BufferPtr& buffer) { return buffer->is_lost(); };
      if (buffers_ != nullptr && std::none_of(buffers_->begin(), buffers_->end(), is_lost)) return buffers_;
      if (!is_getting_) break;
      RETURN_IF_ERROR(WaitUnlessStopped(&got_, &mutex_));
    }
    is_getting_ = true;
  }
  // Also where memory ends on the way: others wait for this.
  const absl::Cleanup end = [this] {
    MutexLock lock(&mutex_);
    is_getting_ = false;
    got_.SignalAll();
  };
  std::vector<BufferPtr> buffers;
  buffers.reserve(literals_.size());
  for (const LiteralPtr& literal : literals_) {
    RETURN_IF_ERROR(CheckStopped());
    ASSIGN_OR_RETURN(buffers.emplace_back(), device_->Get(literal));
  }
  Buffers got = std::make_shared<const std::vector<BufferPtr>>(std::move(buffers));
  MutexLock lock(&mutex_);
  buffers_ = got;
  return got;
}

}  // namespace tensord
