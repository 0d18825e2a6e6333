#include "backends/cuda/kernel_makers.h"

#include <algorithm>
#include <utility>

#include "engine/base/allocated_bytes.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cuda {

absl::StatusOr<std::vector<KernelMakers::Made>> KernelMakers::MakeAll(const ParallelFor& parallel) {
  if (parallel && made_.size() > 1) {
    parallel(static_cast<int64_t>(made_.size()), [this](int64_t i) { Make(static_cast<size_t>(i)); });
    AllocatedBytes::Add(bytes_);
  } else {
    for (size_t i = 0; i < made_.size() && CheckStopped().ok(); ++i) Make(i);
  }
  RETURN_IF_ERROR(CheckStopped());
  made_.resize(std::min(made_.size(), first_bad_ + 1));
  return std::move(made_);
}

void KernelMakers::Make(size_t i) {
  if (i > first_bad_) return;  // another refusal is told
  const AllocatedBytes allocated;
  made_[i] = make_(i);
  if (std::this_thread::get_id() != caller_) bytes_ += allocated.bytes();
  if (made_[i].ok()) return;
  for (size_t first = first_bad_; i < first && !first_bad_.compare_exchange_weak(first, i);) {
  }
}

}  // namespace tensord::cuda
