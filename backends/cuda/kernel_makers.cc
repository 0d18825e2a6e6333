#include "backends/cuda/kernel_makers.h"

#include <algorithm>
#include <utility>

#include "engine/base/allocated_bytes.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cuda {

absl::StatusOr<std::vector<KernelMakers::Made>> KernelMakers::MakeAll(size_t count, Make make,
                                                                      const ParallelFor& parallel) {
  KernelMakers makers(count);
  if (parallel && count > 1) {
    parallel(static_cast<int64_t>(count), [&](int64_t i) { makers.MakeOne(static_cast<size_t>(i), make); });
    AllocatedBytes::Add(makers.bytes_);
  } else {
    for (size_t i = 0; i < count && CheckStopped().ok(); ++i) makers.MakeOne(i, make);
  }
  RETURN_IF_ERROR(CheckStopped());
  makers.made_.resize(std::min(count, makers.first_bad_ + 1));
  return std::move(makers.made_);
}

void KernelMakers::MakeOne(size_t i, Make make) {
  if (i > first_bad_) return;  // another refusal is told
  const AllocatedBytes allocated;
  made_[i] = make(i);
  if (std::this_thread::get_id() != caller_) bytes_ += allocated.bytes();
  if (made_[i].ok()) return;
  for (size_t first = first_bad_; i < first && !first_bad_.compare_exchange_weak(first, i);) {
  }
}

}  // namespace tensord::cuda
