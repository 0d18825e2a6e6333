#include "backends/cuda/device/lanes.h"

namespace tensord::cuda {

absl::StatusOr<Lanes::Loan> Lanes::Borrow() {
  std::unique_ptr<Lane> lane;
  {
    MutexLock lock(&mutex_);
    while (idle_.empty() && made_ == most_) returned_.Wait(&mutex_);
    if (idle_.empty()) {
      ++made_;
    } else {
      lane = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (lane == nullptr) {
    absl::StatusOr<std::unique_ptr<Lane>> made = Lane::Create(context_, libraries_, pinned_);
    if (!made.ok()) {
      TakeBack(nullptr);
      return made.status();
    }
    lane = *std::move(made);
  }
  return Loan(lane.release(), [this](Lane* lent) { TakeBack(std::unique_ptr<Lane>(lent)); });
}

// One that failed is made anew when it is needed.
void Lanes::TakeBack(std::unique_ptr<Lane> lane) {
  if (lane != nullptr && !lane->is_usable()) lane = nullptr;
  MutexLock lock(&mutex_);
  if (lane == nullptr) {
    --made_;
  } else {
    idle_.push_back(std::move(lane));
  }
  returned_.Signal();
}

}  // namespace tensord::cuda
