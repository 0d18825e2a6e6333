#include "backends/cuda/memory/address_range.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

int64_t RoundDown(int64_t bytes, int64_t to) { return bytes / to * to; }
int64_t RoundUp(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

absl::StatusOr<std::unique_ptr<AddressRange>> AddressRange::Reserve(std::shared_ptr<Context> context,
                                                                    int64_t size_bytes) {
  std::unique_ptr<AddressRange> range(new AddressRange(std::move(context)));
  RETURN_IF_ERROR(range->Open(size_bytes));
  return range;
}

absl::Status AddressRange::Open(int64_t size_bytes) {
  const Driver& driver = context_->driver();
  kind_.location.id = context_->device();
  size_t granule = 0;
  RETURN_IF_ERROR(context_->Check(driver.cuMemGetAllocationGranularity(&granule, &kind_, kCuMemGranularityMinimum),
                                  "cuMemGetAllocationGranularity"));
  granule_bytes_ = static_cast<int64_t>(granule);
  const int64_t rounded = RoundUp(size_bytes, granule_bytes_);
  RETURN_IF_ERROR(context_->Check(driver.cuMemAddressReserve(&begin_, static_cast<size_t>(rounded), 0, 0, 0),
                                  "cuMemAddressReserve"));
  size_bytes_ = rounded;
  return absl::OkStatus();
}

AddressRange::~AddressRange() {
  if (!context_->Enter().ok()) return;  // it is lost, with all of its memory
  Trim([](int64_t, int64_t) { return false; });
  if (size_bytes_ > 0) context_->driver().cuMemAddressFree(begin_, static_cast<size_t>(size_bytes_));
}

absl::Status AddressRange::VisitGaps(int64_t offset, int64_t size_bytes,
                                     absl::FunctionRef<absl::Status(int64_t, int64_t)> visit) const {
  int64_t at = RoundDown(offset, granule_bytes_);
  const int64_t end = RoundUp(offset + size_bytes, granule_bytes_);
  auto next = extents_.upper_bound(at);
  if (next != extents_.begin() && std::prev(next)->first + std::prev(next)->second > at) --next;
  std::vector<std::pair<int64_t, int64_t>> gaps;  // first: a visit may add extents
  for (; at < end && next != extents_.end() && next->first < end; ++next) {
    if (next->first > at) gaps.emplace_back(at, next->first);
    at = next->first + next->second;
  }
  if (at < end) gaps.emplace_back(at, end);
  for (const auto& [gap, gap_end] : gaps) RETURN_IF_ERROR(visit(gap, gap_end));
  return absl::OkStatus();
}

int64_t AddressRange::MissingBytes(int64_t offset, int64_t size_bytes) const {
  int64_t bytes = 0;
  VisitGaps(offset, size_bytes, [&](int64_t begin, int64_t end) {
    bytes += end - begin;
    return absl::OkStatus();
  }).IgnoreError();
  return bytes;
}

absl::Status AddressRange::Back(int64_t offset, int64_t size_bytes, int64_t extent_bytes) {
  const int64_t most = std::max(RoundDown(extent_bytes, granule_bytes_), granule_bytes_);
  return VisitGaps(offset, size_bytes, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += most) RETURN_IF_ERROR(AddExtent(at, std::min(most, end - at)));
    return absl::OkStatus();
  });
}

// What may throw comes before a call of the driver, or behind the one that undoes it.
absl::Status AddressRange::AddExtent(int64_t begin, int64_t size_bytes) {
  const Driver& driver = context_->driver();
  const size_t bytes = static_cast<size_t>(size_bytes);
  const CuAddress address = begin_ + static_cast<CuAddress>(begin);
  const auto extent = extents_.emplace(begin, size_bytes).first;
  absl::Cleanup forget = [&] { extents_.erase(extent); };
  CuAllocation memory = 0;
  RETURN_IF_ERROR(context_->Check(driver.cuMemCreate(&memory, bytes, &kind_, 0), "cuMemCreate"));
  const CuResult mapped = driver.cuMemMap(address, bytes, 0, memory, 0);
  const CuResult released = driver.cuMemRelease(memory);  // the mapping keeps it
  RETURN_IF_ERROR(context_->Check(mapped, "cuMemMap"));
  CuMemAccessDesc access;
  access.location = kind_.location;
  const CuResult accessible = released == kCuSuccess ? driver.cuMemSetAccess(address, bytes, &access, 1) : kCuSuccess;
  if (released != kCuSuccess || accessible != kCuSuccess) {
    driver.cuMemUnmap(address, bytes);
    if (released != kCuSuccess) driver.cuMemRelease(memory);
    RETURN_IF_ERROR(context_->Check(released, "cuMemRelease"));
    return context_->Check(accessible, "cuMemSetAccess");
  }
  std::move(forget).Cancel();
  backed_bytes_ += size_bytes;
  return absl::OkStatus();
}

int64_t AddressRange::Trim(absl::FunctionRef<bool(int64_t, int64_t)> is_used, int64_t enough_bytes) {
  int64_t trimmed = 0;
  for (auto it = extents_.begin(); it != extents_.end() && enough_bytes > 0;) {
    const auto [begin, bytes] = *it;
    const CuAddress address = begin_ + static_cast<CuAddress>(begin);
    const bool goes =
        !is_used(begin, begin + bytes) &&
        context_->Check(context_->driver().cuMemUnmap(address, static_cast<size_t>(bytes)), "cuMemUnmap").ok();
    if (!goes) {
      ++it;
      continue;
    }
    backed_bytes_ -= bytes;
    enough_bytes -= bytes;
    ++trimmed;
    it = extents_.erase(it);
  }
  return trimmed;
}

// Memory may or may not have gone with the context: then the calls fail, and nothing is left to do.
void AddressRange::GiveUp() {
  for (const auto& [begin, bytes] : extents_) {
    context_->driver().cuMemUnmap(begin_ + static_cast<CuAddress>(begin), static_cast<size_t>(bytes));
  }
  extents_.clear();
  backed_bytes_ = 0;
}

}  // namespace tensord::cuda
