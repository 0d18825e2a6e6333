#include "clients/load/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tensord::load {
namespace {

// A power of two has 2^kSplitBits buckets; below the first such power every nanosecond has its own.
constexpr int kSplitBits = 6;
constexpr int kLargestBits = 46;
constexpr int64_t kLargest = (int64_t{1} << kLargestBits) - 1;
constexpr size_t kBuckets = static_cast<size_t>(kLargestBits - kSplitBits + 1) << kSplitBits;

int ShiftOf(int64_t value) {
  return std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(value))) - 1 - kSplitBits);
}

size_t BucketOf(int64_t value) {
  const int shift = ShiftOf(value);
  return (static_cast<size_t>(shift) << kSplitBits) + static_cast<size_t>(value >> shift);
}

// Returns the middle of a bucket.
int64_t ValueOf(size_t bucket) {
  const size_t shift = bucket < (size_t{2} << kSplitBits) ? 0 : (bucket >> kSplitBits) - 1;
  const int64_t first = static_cast<int64_t>(bucket - (shift << kSplitBits)) << shift;
  return first + ((int64_t{1} << shift) - 1) / 2;
}

}  // namespace

void LatencyHistogram::AddNanoseconds(int64_t nanoseconds) {
  const int64_t value = std::clamp<int64_t>(nanoseconds, 0, kLargest);
  if (buckets_.empty()) buckets_.resize(kBuckets);
  ++buckets_[BucketOf(value)];
  smallest_ = count_ == 0 ? value : std::min(smallest_, value);
  largest_ = std::max(largest_, value);
  sum_ += static_cast<double>(value);
  ++count_;
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  if (buckets_.empty()) buckets_.resize(kBuckets);
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  smallest_ = count_ == 0 ? other.smallest_ : std::min(smallest_, other.smallest_);
  largest_ = std::max(largest_, other.largest_);
  sum_ += other.sum_;
  count_ += other.count_;
}

absl::Duration LatencyHistogram::mean() const {
  return count_ == 0 ? absl::ZeroDuration() : absl::Nanoseconds(sum_ / static_cast<double>(count_));
}

absl::Duration LatencyHistogram::Quantile(double fraction) const {
  if (count_ == 0) return absl::ZeroDuration();
  const int64_t rank =
      std::clamp<int64_t>(static_cast<int64_t>(std::ceil(fraction * static_cast<double>(count_))), 1, count_);
  if (rank == count_) return largest();
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank) return absl::Nanoseconds(std::clamp(ValueOf(bucket), smallest_, largest_));
  }
  return largest();
}

}  // namespace tensord::load
