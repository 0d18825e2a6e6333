#ifndef TENSORD_BACKENDS_CUDA_DEVICE_LANE_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_LANE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/graph.h"
#include "backends/cuda/device/library_handles.h"
#include "backends/cuda/device/pinned_blocks.h"

namespace tensord::cuda {

// A stream with a ring of pinned memory, through which bytes of any memory of the host go to the device and come from
// it; those of pinned blocks go straight. Confined to one thread at a time, which has entered the context. The first
// failure ends what is on its way, for good: when a call returns an error, the stream is empty, or else the context is
// lost. One that goes with work on its way, as an exception may make it, waits for that first.
//
//   RETURN_IF_ERROR(lane->Upload(to, bytes, size));      // any number of these, in this order on the device
//   RETURN_IF_ERROR(lane->Download(other, from, size));
//   RETURN_IF_ERROR(lane->Finish());
class Lane {
 public:
  static constexpr int kPlaces = 4;
  static constexpr int64_t kPlaceBytes = int64_t{4} << 20;

  // The libraries must outlive the lane, and so must the blocks; null: there are none.
  static absl::StatusOr<std::unique_ptr<Lane>> Create(std::shared_ptr<Context> context, Libraries* libraries,
                                                      PinnedBlocks* pinned = nullptr);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Copies to the device, which has the bytes after Finish. `from` has been read when this returns, unless it lies in a
  // pinned block: that is read until Finish.
  absl::Status Upload(CuAddress to, const char* from, int64_t size_bytes);
  // Copies from the device. `to` has the bytes after Finish, and may be written until then.
  absl::Status Download(char* to, CuAddress from, int64_t size_bytes);
  // Copies on the device. The two do not overlap.
  absl::Status Copy(CuAddress to, CuAddress from, int64_t size_bytes);
  // Has a function enqueue work on the stream, kernels for example.
  absl::Status Enqueue(absl::FunctionRef<absl::Status(CuStream)> work);
  // Captures what a function enqueues, as Graph::Capture does.
  std::shared_ptr<Graph> Capture(absl::FunctionRef<absl::Status(CuStream)> work) {
    return Graph::Capture(context_, stream_, work);
  }
  // Sets each byte on the device.
  absl::Status Fill(CuAddress to, unsigned char value, int64_t size_bytes);
  // Waits until the stream has come to an event; for all of it where nobody can wait for the event.
  absl::Status WaitFor(CuEvent event);
  // Waits for all of it.
  absl::Status Finish();

  LibraryHandles& handles() { return *handles_; }

  // Tells whether another may have it: nothing has failed, and nothing is on its way.
  bool is_usable() const { return !has_failed_ && is_empty_; }

 private:
  // A piece of the ring, and the copy that it is used for.
  struct Place {
    char* memory = nullptr;
    CuEvent done = nullptr;
    bool is_busy = false;
    char* to = nullptr;  // of a download: where the bytes go from here
    int64_t bytes = 0;
  };

  Lane(std::shared_ptr<Context> context, PinnedBlocks* pinned) : context_(std::move(context)), pinned_(pinned) {}
  absl::Status Open(Libraries* libraries);
  // Returns the next place, when its last copy is over.
  absl::StatusOr<Place*> TakePlace();
  // Marks the place as in use until the stream comes here.
  absl::Status Occupy(Place* place);
  absl::Status Settle(Place* place);
  // Waits by asking, and sleeps where that takes long: the driver's own waits for a stream ask all the time.
  absl::Status Wait(CuEvent event);
  // Keeps the memory pinned until Finish; false if it is not.
  bool Hold(const void* memory, int64_t size_bytes);
  // Enqueues a copy as one piece, and takes a place for its end alone.
  absl::Status CopyDirectly(absl::FunctionRef<absl::Status()> copy);
  absl::Status UploadDirectly(CuAddress to, const char* from, int64_t size_bytes);
  absl::Status UploadPieces(CuAddress to, const char* from, int64_t size_bytes);
  absl::Status DownloadDirectly(char* to, CuAddress from, int64_t size_bytes);
  absl::Status DownloadPieces(char* to, CuAddress from, int64_t size_bytes);
  absl::Status SettleAll();
  // Passes a status on; empties the stream first where it is an error. DEVICE_LOST where the device was lost meanwhile.
  absl::Status OrDrain(absl::Status status);
  // Empties the stream, or else loses the context.
  void Drain();

  const std::shared_ptr<Context> context_;
  PinnedBlocks* const pinned_;
  std::vector<PinnedBlocks::Hold> holds_;  // of copies on their way
  CuStream stream_ = nullptr;
  void* ring_ = nullptr;
  std::unique_ptr<LibraryHandles> handles_;  // constant after Create
  CuEvent end_ = nullptr;                    // behind all of it, once somebody waits for that
  std::array<Place, kPlaces> places_;
  size_t next_ = 0;
  bool is_empty_ = true;  // the stream, as far as is known
  bool has_failed_ = false;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_LANE_H_
