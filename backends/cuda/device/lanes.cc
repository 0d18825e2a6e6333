#include "backends/cuda/device/lanes.h"

#include "absl/cleanup/cleanup.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cuda {

Lanes::Lanes(std::shared_ptr<Context> context, Libraries* libraries, int most, PinnedBlocks* pinned)
    : context_(std::move(context)), libraries_(libraries), pinned_(pinned), most_(most) {
  idle_.reserve(static_cast<size_t>(most));  // so that one that comes back needs no memory
}

absl::StatusOr<Lanes::Loan> Lanes::Borrow() {
  std::unique_ptr<Lane> lane;
  {
    MutexLock lock(&mutex_);
    while (idle_.empty() && made_ == most_) RETURN_IF_ERROR(WaitUnlessStopped(&returned_, &mutex_));
    if (idle_.empty()) {
      ++made_;
    } else {
      lane = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (lane == nullptr) {
    absl::Cleanup give_up = [this] { TakeBack(nullptr); };
    ASSIGN_OR_RETURN(lane, Lane::Create(context_, libraries_, pinned_));
    std::move(give_up).Cancel();
  }
  return Loan(lane.release(), [this](Lane* lent) { TakeBack(std::unique_ptr<Lane>(lent)); });
}

// One that failed, or whose work nobody has waited for since an exception came, is made anew when it is needed. It goes
// before its borrower's memory does, when its work is over.
void Lanes::TakeBack(std::unique_ptr<Lane> lane) {
  if (lane != nullptr && !lane->is_usable()) lane = nullptr;
  MutexLock lock(&mutex_);
  if (lane == nullptr) {
    --made_;
  } else {
    idle_.push_back(std::move(lane));
  }
  returned_.SignalAll();  // one alone may leave with it
}

}  // namespace tensord::cuda
