#include "backends/cuda/memory/device_pool.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// Kernels load 16 bytes at once, and libraries want 256.
constexpr int64_t kPieceBytes = 512;
// Of addresses there are many more than of memory, so that pieces may lie apart.
constexpr int64_t kAddressesForMemory = 4;
// Memory for a large piece is taken in extents of an eighth of it, up to so many bytes: few calls of the driver, and
// little in vain behind a smaller piece that stays there.
constexpr int64_t kExtentsOfPiece = 8;
constexpr int64_t kMostExtentBytes = int64_t{16} << 20;
// Others are small, an eighth of which is no more than a granule. So none that stays keeps more than three times its
// bytes, or two granules beside them.
constexpr int64_t kMostSmallBytes = int64_t{16} << 20;

int64_t RoundUp(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + kPieceBytes - 1) / kPieceBytes * kPieceBytes; }

}  // namespace

DevicePool::DevicePool(std::shared_ptr<Context> context, Options options)
    : context_(std::move(context)), options_(std::move(options)) {}

absl::StatusOr<std::shared_ptr<DevicePool>> DevicePool::Create(std::shared_ptr<Context> context,
                                                               const Options& options) {
  ASSIGN_OR_RETURN(const int has_virtual_memory, context->Attribute(kCuVirtualMemoryManagementSupported));
  std::shared_ptr<DevicePool> pool(new DevicePool(std::move(context), options));
  if (has_virtual_memory == 0 || !options.uses_virtual_memory) return pool;
  const int64_t most = std::numeric_limits<int64_t>::max() / (2 * kAddressesForMemory);
  MutexLock lock(&pool->mutex_);
  const int64_t bytes = std::clamp(options.limit_bytes, kPieceBytes, most) * kAddressesForMemory;
  ASSIGN_OR_RETURN(pool->range_, AddressRange::Reserve(pool->context_, bytes));
  return pool;
}

absl::StatusOr<std::shared_ptr<Buffer>> DevicePool::Allocate(int64_t size_bytes) {
  CuAddress address = 0;
  const int64_t bytes = size_bytes > options_.limit_bytes ? size_bytes : RoundUp(size_bytes);
  {
    MutexLock lock(&mutex_);
    absl::StatusOr<CuAddress> taken = TakeLocked(bytes);
    if (!taken.ok()) {
      if (absl::IsResourceExhausted(taken.status())) ++stats_.refused;
      return taken.status();
    }
    address = *taken;
    stats_.in_use_bytes += bytes;
    stats_.peak_in_use_bytes = std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
  }
  absl::Cleanup release = [&] { Release(address, bytes); };
  auto buffer = std::make_shared<Buffer>(
      reinterpret_cast<void*>(address), size_bytes,
      [pool = shared_from_this(), bytes](void* at, int64_t) { pool->Release(reinterpret_cast<CuAddress>(at), bytes); },
      context_->loss());
  std::move(release).Cancel();
  return buffer;
}

absl::StatusOr<CuAddress> DevicePool::TakeLocked(int64_t bytes) {
  if (bytes > options_.limit_bytes - stats_.in_use_bytes) {
    const int64_t wanted = CheckedAdd(stats_.in_use_bytes, bytes).value_or(std::numeric_limits<int64_t>::max());
    return RefuseLimit(Refusal::kOutOfMemory, options_.limit_name, options_.limit_bytes, wanted,
                       "bytes of tensors on the device");
  }
  if (range_ != nullptr) return TakeOfRangeLocked(bytes);
  CuAddress address = 0;
  RETURN_IF_ERROR(
      context_->Check(context_->driver().cuMemAlloc_v2(&address, static_cast<size_t>(bytes)), "cuMemAlloc"));
  absl::Cleanup free = [&] { context_->driver().cuMemFree_v2(address); };
  pieces_[static_cast<int64_t>(address)] = bytes;
  std::move(free).Cancel();
  ++stats_.allocated;
  return address;
}

absl::StatusOr<CuAddress> DevicePool::TakeOfRangeLocked(int64_t bytes) {
  const bool is_small = bytes <= kMostSmallBytes;
  absl::StatusOr<int64_t> offset = TakeAtLocked(is_small ? End::kHigh : End::kLow, bytes);
  if (absl::IsResourceExhausted(offset.status())) {
    // There may be memory behind the holes of the other end.
    const absl::StatusOr<int64_t> other = TakeAtLocked(is_small ? End::kLow : End::kHigh, bytes);
    if (!absl::IsResourceExhausted(other.status())) offset = other;
  }
  RETURN_IF_ERROR(offset.status());
  return range_->begin() + static_cast<CuAddress>(*offset);
}

absl::StatusOr<int64_t> DevicePool::TakeAtLocked(End end, int64_t bytes) {
  const std::optional<int64_t> offset = TakeHoleLocked(end, bytes);
  if (!offset.has_value()) {
    return Refuse(Refusal::kOutOfMemory,
                  absl::StrCat("the device has no ", bytes, " bytes of addresses in one piece; free tensors"));
  }
  absl::Cleanup give_back = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    pieces_.erase(*offset);
    FreeHoleLocked(*offset, bytes);
  };
  pieces_[*offset] = bytes;
  RETURN_IF_ERROR(BackLocked(end, *offset, bytes));
  std::move(give_back).Cancel();
  return *offset;
}

std::optional<int64_t> DevicePool::TakeHoleLocked(End end, int64_t bytes) {
  const int64_t size = range_->size_bytes();
  if (end == End::kLow) return low_.TakeBelow(bytes, size - high_.end());
  const std::optional<int64_t> below = high_.TakeBelow(bytes, size - low_.end());
  return below.has_value() ? std::make_optional(size - *below - bytes) : std::nullopt;
}

void DevicePool::FreeHoleLocked(int64_t offset, int64_t bytes) {
  if (offset < low_.end()) {
    low_.Free(offset, bytes);
  } else {
    high_.Free(range_->size_bytes() - offset - bytes, bytes);
  }
}

absl::Status DevicePool::BackLocked(End end, int64_t offset, int64_t bytes) {
  const int64_t missing = range_->MissingBytes(offset, bytes);
  const int64_t granule = range_->granule_bytes();
  const auto excess = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return (range_->backed_bytes() + missing - options_.limit_bytes) / granule * granule;
  };
  if (excess() > 0) TrimLocked(excess());
  if (excess() > 0) {
    return RefuseLimit(Refusal::kOutOfMemory, options_.limit_name, options_.limit_bytes,
                       range_->backed_bytes() + missing, "bytes for tensors on the device, and for holes between them");
  }
  const int64_t extent = end == End::kLow ? std::min(bytes / kExtentsOfPiece, kMostExtentBytes) : granule;
  absl::Status backed = range_->Back(offset, bytes, extent);
  if (absl::IsResourceExhausted(backed)) {  // others use the device too
    TrimLocked();
    backed = range_->Back(offset, bytes, extent);
  }
  if (backed.ok()) ++(missing > 0 ? stats_.allocated : stats_.reused);
  return backed;
}

void DevicePool::Release(CuAddress address, int64_t bytes) {
  MutexLock lock(&mutex_);
  stats_.in_use_bytes -= bytes;
  if (range_ == nullptr) {
    pieces_.erase(static_cast<int64_t>(address));
    if (context_->Enter().ok()) context_->Check(context_->driver().cuMemFree_v2(address), "cuMemFree").IgnoreError();
    return;
  }
  const int64_t offset = static_cast<int64_t>(address - range_->begin());
  pieces_.erase(offset);
  FreeHoleLocked(offset, bytes);
}

void DevicePool::Trim() {
  MutexLock lock(&mutex_);
  if (range_ != nullptr) TrimLocked();
}

void DevicePool::GiveUp() {
  MutexLock lock(&mutex_);
  if (range_ != nullptr) range_->GiveUp();
}

bool DevicePool::HasAll(absl::Span<void* const> addresses) const {
  MutexLock lock(&mutex_);
  return std::all_of(addresses.begin(), addresses.end(), [this](const void* pointer) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const CuAddress address = reinterpret_cast<CuAddress>(pointer);
    if (address == 0) return true;
    if (range_ != nullptr) {
      return address >= range_->begin() && address - range_->begin() <= static_cast<CuAddress>(range_->size_bytes());
    }
    const auto next = pieces_.upper_bound(static_cast<int64_t>(address));
    return next != pieces_.begin() && static_cast<int64_t>(address) <= std::prev(next)->first + std::prev(next)->second;
  });
}

void DevicePool::TrimLocked(int64_t enough_bytes) {
  stats_.trimmed += range_->Trim([this](int64_t begin, int64_t end)
                                     ABSL_NO_THREAD_SAFETY_ANALYSIS { return IsUsedLocked(begin, end); },
                                 enough_bytes);
}

bool DevicePool::IsUsedLocked(int64_t begin, int64_t end) const {
  auto next = pieces_.lower_bound(begin);
  if (next != pieces_.end() && next->first < end) return true;
  return next != pieces_.begin() && std::prev(next)->first + std::prev(next)->second > begin;
}

MemoryStats DevicePool::stats() const {
  MutexLock lock(&mutex_);
  MemoryStats stats = stats_;
  if (range_ != nullptr) stats.free_bytes = range_->backed_bytes() - stats.in_use_bytes;
  return stats;
}

}  // namespace tensord::cuda
