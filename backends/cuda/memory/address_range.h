#ifndef TENSORD_BACKENDS_CUDA_MEMORY_ADDRESS_RANGE_H_
#define TENSORD_BACKENDS_CUDA_MEMORY_ADDRESS_RANGE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/device/context.h"

namespace tensord::cuda {

// Addresses of a device, reserved for as long as this object lives, of which parts are backed by its memory: extents of
// whole granules, which go back as they came. Places are offsets in it. Confined to its owner, whose thread has entered
// the context.
class AddressRange {
 public:
  // Reserves at least so many bytes.
  static absl::StatusOr<std::unique_ptr<AddressRange>> Reserve(std::shared_ptr<Context> context, int64_t size_bytes);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  CuAddress begin() const { return begin_; }
  int64_t size_bytes() const { return size_bytes_; }
  int64_t granule_bytes() const { return granule_bytes_; }
  int64_t backed_bytes() const { return backed_bytes_; }

  // Returns the bytes of memory that Back would take.
  int64_t MissingBytes(int64_t offset, int64_t size_bytes) const;
  // Backs a part by memory, in extents of so many bytes at most, or of one granule. OUT_OF_MEMORY if the device has no
  // more; some of the part may be backed then.
  absl::Status Back(int64_t offset, int64_t size_bytes, int64_t extent_bytes);
  // Gives the memory of extents back that are not used, until it is `enough_bytes`; nothing on the device may touch
  // them. Returns their number.
  int64_t Trim(absl::FunctionRef<bool(int64_t begin, int64_t end)> is_used,
               int64_t enough_bytes = std::numeric_limits<int64_t>::max());
  // Gives all memory back when the context is lost and another has taken its place. The addresses stay reserved for
  // good: whether the driver still has them is not known.
  void GiveUp();

 private:
  explicit AddressRange(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  absl::Status Open(int64_t size_bytes);
  // Calls a function with each gap between extents in the granules of a part, until it fails.
  absl::Status VisitGaps(int64_t offset, int64_t size_bytes,
                         absl::FunctionRef<absl::Status(int64_t begin, int64_t end)> visit) const;
  absl::Status AddExtent(int64_t begin, int64_t size_bytes);

  const std::shared_ptr<Context> context_;
  CuMemAllocationProp kind_;
  int64_t granule_bytes_ = 0;
  CuAddress begin_ = 0;
  int64_t size_bytes_ = 0;
  int64_t backed_bytes_ = 0;
  std::map<int64_t, int64_t> extents_;  // begin → bytes
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_MEMORY_ADDRESS_RANGE_H_
