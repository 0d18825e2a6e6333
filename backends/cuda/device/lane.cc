#include "backends/cuda/device/lane.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// A wait by asking costs a fifth of one that sleeps, where it is short.
constexpr auto kAsks = std::chrono::microseconds(50);

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> Lane::Create(std::shared_ptr<Context> context, Libraries* libraries,
                                                   PinnedBlocks* pinned) {
  std::unique_ptr<Lane> lane(new Lane(std::move(context), pinned));
  RETURN_IF_ERROR(lane->Open(libraries));
  return lane;
}

absl::Status Lane::Open(Libraries* libraries) {
  const Driver& driver = context_->driver();
  RETURN_IF_ERROR(context_->Check(driver.cuStreamCreate(&stream_, kCuStreamNonBlocking), "cuStreamCreate"));
  handles_ = std::make_unique<LibraryHandles>(context_, libraries, stream_);
  RETURN_IF_ERROR(context_->Check(driver.cuMemHostAlloc(&ring_, kPlaces * kPlaceBytes, 0), "cuMemHostAlloc"));
  const auto make = [&](CuEvent* event) {
    return context_->Check(driver.cuEventCreate(event, kCuEventBlockingSync | kCuEventDisableTiming), "cuEventCreate");
  };
  for (size_t i = 0; i < places_.size(); ++i) {
    places_[i].memory = static_cast<char*>(ring_) + i * kPlaceBytes;
    RETURN_IF_ERROR(make(&places_[i].done));
  }
  return make(&end_);
}

// Errors change nothing any more. A lost context has nothing left to destroy.
Lane::~Lane() {
  const bool has_entered = context_->Enter().ok();
  if (!is_empty_ && has_entered) Drain();
  if (!is_empty_) context_->Lose();  // nobody can wait for what is on its way
  if (!has_entered || context_->is_lost()) return;
  const Driver& driver = context_->driver();
  handles_.reset();
  for (const Place& place : places_) {
    if (place.done != nullptr) driver.cuEventDestroy_v2(place.done);
  }
  if (end_ != nullptr) driver.cuEventDestroy_v2(end_);
  if (stream_ != nullptr) driver.cuStreamDestroy_v2(stream_);
  if (ring_ != nullptr) driver.cuMemFreeHost(ring_);
}

absl::Status Lane::Upload(CuAddress to, const char* from, int64_t size_bytes) {
  is_empty_ = false;
  return OrDrain(Hold(from, size_bytes) ? UploadDirectly(to, from, size_bytes) : UploadPieces(to, from, size_bytes));
}

bool Lane::Hold(const void* memory, int64_t size_bytes) {
  PinnedBlocks::Hold hold = pinned_ == nullptr ? nullptr : pinned_->Find(memory, size_bytes);
  if (hold == nullptr) return false;
  holds_.push_back(std::move(hold));
  return true;
}

absl::Status Lane::CopyDirectly(absl::FunctionRef<absl::Status()> copy) {
  ASSIGN_OR_RETURN(Place* const place, TakePlace());
  RETURN_IF_ERROR(copy());
  return Occupy(place);
}

absl::Status Lane::UploadDirectly(CuAddress to, const char* from, int64_t size_bytes) {
  context_->counts().to_device_bytes += size_bytes;
  context_->counts().direct_to_bytes += size_bytes;
  return CopyDirectly([&] {
    return context_->Check(context_->driver().cuMemcpyHtoDAsync_v2(to, from, static_cast<size_t>(size_bytes), stream_),
                           "cuMemcpyHtoDAsync");
  });
}

absl::Status Lane::UploadPieces(CuAddress to, const char* from, int64_t size_bytes) {
  for (int64_t at = 0; at < size_bytes; at += kPlaceBytes) {
    const size_t bytes = static_cast<size_t>(std::min(kPlaceBytes, size_bytes - at));
    ASSIGN_OR_RETURN(Place* const place, TakePlace());
    std::memcpy(place->memory, from + at, bytes);
    RETURN_IF_ERROR(context_->Check(
        context_->driver().cuMemcpyHtoDAsync_v2(to + static_cast<CuAddress>(at), place->memory, bytes, stream_),
        "cuMemcpyHtoDAsync"));
    RETURN_IF_ERROR(Occupy(place));
    context_->counts().to_device_bytes += static_cast<int64_t>(bytes);
  }
  return absl::OkStatus();
}

absl::Status Lane::Download(char* to, CuAddress from, int64_t size_bytes) {
  is_empty_ = false;
  return OrDrain(Hold(to, size_bytes) ? DownloadDirectly(to, from, size_bytes) : DownloadPieces(to, from, size_bytes));
}

absl::Status Lane::DownloadDirectly(char* to, CuAddress from, int64_t size_bytes) {
  context_->counts().from_device_bytes += size_bytes;
  context_->counts().direct_from_bytes += size_bytes;
  return CopyDirectly([&] {
    return context_->Check(context_->driver().cuMemcpyDtoHAsync_v2(to, from, static_cast<size_t>(size_bytes), stream_),
                           "cuMemcpyDtoHAsync");
  });
}

absl::Status Lane::DownloadPieces(char* to, CuAddress from, int64_t size_bytes) {
  for (int64_t at = 0; at < size_bytes; at += kPlaceBytes) {
    const int64_t bytes = std::min(kPlaceBytes, size_bytes - at);
    ASSIGN_OR_RETURN(Place* const place, TakePlace());
    RETURN_IF_ERROR(
        context_->Check(context_->driver().cuMemcpyDtoHAsync_v2(place->memory, from + static_cast<CuAddress>(at),
                                                                static_cast<size_t>(bytes), stream_),
                        "cuMemcpyDtoHAsync"));
    place->to = to + at;
    place->bytes = bytes;
    RETURN_IF_ERROR(Occupy(place));
    context_->counts().from_device_bytes += bytes;
  }
  return absl::OkStatus();
}

absl::Status Lane::Copy(CuAddress to, CuAddress from, int64_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  is_empty_ = false;
  context_->counts().within_bytes += size_bytes;
  return OrDrain(
      context_->Check(context_->driver().cuMemcpyDtoDAsync_v2(to, from, static_cast<size_t>(size_bytes), stream_),
                      "cuMemcpyDtoDAsync"));
}

absl::Status Lane::Enqueue(absl::FunctionRef<absl::Status(CuStream)> work) {
  is_empty_ = false;
  return OrDrain(work(stream_));
}

absl::Status Lane::Fill(CuAddress to, unsigned char value, int64_t size_bytes) {
  is_empty_ = false;
  return OrDrain(context_->Check(
      context_->driver().cuMemsetD8Async(to, value, static_cast<size_t>(size_bytes), stream_), "cuMemsetD8Async"));
}

absl::Status Lane::WaitFor(CuEvent event) {
  const absl::Status waited = Wait(event);
  return waited.ok() || context_->is_lost() ? OrDrain(waited) : Finish();
}

absl::Status Lane::Finish() { return OrDrain(SettleAll()); }

absl::Status Lane::SettleAll() {
  for (int i = 0; i < kPlaces; ++i) RETURN_IF_ERROR(TakePlace().status());
  // Kernels and copies on the device have no place.
  RETURN_IF_ERROR(context_->Check(context_->driver().cuEventRecord(end_, stream_), "cuEventRecord"));
  RETURN_IF_ERROR(Wait(end_));
  holds_.clear();
  is_empty_ = true;
  return absl::OkStatus();
}

absl::StatusOr<Lane::Place*> Lane::TakePlace() {
  Place* const place = &places_[next_];
  next_ = (next_ + 1) % places_.size();
  RETURN_IF_ERROR(Settle(place));
  return place;
}

absl::Status Lane::Occupy(Place* place) {
  RETURN_IF_ERROR(context_->Check(context_->driver().cuEventRecord(place->done, stream_), "cuEventRecord"));
  place->is_busy = true;
  return absl::OkStatus();
}

absl::Status Lane::Settle(Place* place) {
  if (!place->is_busy) return absl::OkStatus();
  RETURN_IF_ERROR(Wait(place->done));
  if (place->to != nullptr) std::memcpy(place->to, place->memory, static_cast<size_t>(place->bytes));
  place->is_busy = false;
  place->to = nullptr;
  return absl::OkStatus();
}

absl::Status Lane::Wait(CuEvent event) {
  const Driver& driver = context_->driver();
  const auto until = std::chrono::steady_clock::now() + kAsks;
  do {
    const CuResult result = driver.cuEventQuery(event);
    if (result != kCuNotReady) return context_->Check(result, "cuEventQuery");
  } while (std::chrono::steady_clock::now() < until);
  return context_->Check(driver.cuEventSynchronize(event), "cuEventSynchronize");
}

absl::Status Lane::OrDrain(absl::Status status) {
  if (status.ok()) return status;
  has_failed_ = true;
  Drain();
  // Libraries say of a fault of the device only that their call has failed.
  if (!context_->is_lost() || absl::IsDataLoss(status)) return status;
  return Refuse(Refusal::kDeviceLost,
                absl::StrCat(status.message(), "; the device has failed: what was on it is gone, compute it again"));
}

void Lane::Drain() {
  const Driver& driver = context_->driver();
  // Memory that a copy may still touch must not be given to anybody else.
  if (driver.cuStreamSynchronize(stream_) != kCuSuccess && driver.cuCtxSynchronize() != kCuSuccess) context_->Lose();
  for (Place& place : places_) {
    place.is_busy = false;
    place.to = nullptr;
  }
  holds_.clear();
  is_empty_ = true;
}

}  // namespace tensord::cuda
