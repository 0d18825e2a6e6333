#include "backends/cpu/fft/transforms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/allocated_bytes.h"
#include "engine/base/stop_signal.h"
#include "hwy/targets.h"

namespace tensord::cpu {

const FftLanes& BestFftLanes() {
#if TENSORD_HAS_X86_FFT_LANES
  const int64_t targets = static_cast<int64_t>(hwy::SupportedTargets());
  if ((targets & HWY_AVX3) != 0) return tensord_fft_lanes_avx512;
  if ((targets & HWY_AVX2) != 0) return tensord_fft_lanes_avx2;
#endif
  return tensord_fft_lanes_baseline;
}

std::shared_ptr<const FftLaneTransform> FftTransforms::Lanes(bool is_double, FftForm form, int64_t length) {
  const FftLanes& lanes = BestFftLanes();
  return Get<FftLaneTransform>(
      absl::StrCat(lanes.name, " lanes ", is_double, " ", static_cast<int>(form), " ", length),
      [&]() -> std::shared_ptr<const FftLaneTransform> { return lanes.make_lanes(is_double, form, length); });
}

std::shared_ptr<const FftSplitTransform> FftTransforms::Split(bool is_double, int64_t n1, int64_t n2) {
  const FftLanes& lanes = BestFftLanes();
  return Get<FftSplitTransform>(
      absl::StrCat(lanes.name, " split ", is_double, " ", n1, " ", n2),
      [&]() -> std::shared_ptr<const FftSplitTransform> { return lanes.make_split(is_double, n1, n2); });
}

FftTransforms::Stats FftTransforms::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

std::shared_ptr<const void> FftTransforms::Find(const std::string& name, absl::FunctionRef<Made()> make) {
  {
    MutexLock lock(&mutex_);
    const auto it = entries_.find(name);
    if (it != entries_.end()) {
      ++stats_.hits;
      it->second.last_use = ++uses_;
      return it->second.made.table;
    }
    ++stats_.misses;
  }
  // Made without the lock, which a large table would hold for long; of two that are made at once one is kept.
  // And whole, though the work for which it is made may be left: others will use it.
  const StopSignal::Scope without_signal(nullptr);
  Made made = make();
  if (made.bytes > limit_bytes_) return made.table;
  MutexLock lock(&mutex_);
  const auto [it, inserted] = entries_.try_emplace(name, Entry{made, ++uses_});
  if (!inserted) return it->second.made.table;
  ++stats_.tables;
  stats_.bytes += made.bytes;
  while (stats_.bytes > limit_bytes_) DropOldest();
  return made.table;
}

void FftTransforms::DropOldest() {
  const AllocatedBytes::Pause others;
  const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return a.second.last_use < b.second.last_use;
  });
  --stats_.tables;
  ++stats_.evictions;
  stats_.bytes -= oldest->second.made.bytes;
  entries_.erase(oldest);
}

}  // namespace tensord::cpu
