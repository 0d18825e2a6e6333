#ifndef TENSORD_SERVER_SESSIONS_RESIDENT_TENSOR_H_
#define TENSORD_SERVER_SESSIONS_RESIDENT_TENSOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/mutex.h"
#include "engine/exec/backend/buffer.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/shape.h"
#include "server/sessions/resident_ledger.h"

namespace tensord::server {

// The description of a resident tensor, beside its bytes.
struct ResidentType {
  std::string device;  // "cpu:0"
  ConcreteType type;   // the shape is the client's, whatever the order of the elements
  Order order = Order::kColumnMajor;

  int64_t num_bytes() const { return type.num_bytes(); }
};

// A tensor as its readers see it, in its device's memory. The buffer stays as it is, alive and unchanged, while a copy
// of the pointer exists, also when the handle is deleted or donated or the session ends.
struct ResidentTensor {
  ResidentType type;
  BufferPtr buffer;
  uint64_t version = 0;  // no other tensor's, also under the same handle
};

// The memory of a resident tensor on its device, with its charge: its bytes, or kHandleBytes for each handle that names
// it if that is more. Several handles may name it if a result is one of the arguments. Immutable while it has readers
// or several owners; its only owner may write. Thread-safe.
class ResidentMemory {
 public:
  // `charge` is for one handle, ChargedBytes of the tensor.
  ResidentMemory(BufferPtr buffer, MemoryCharge charge);
  ~ResidentMemory();
  ResidentMemory(const ResidentMemory&) = delete;
  ResidentMemory& operator=(const ResidentMemory&) = delete;

  const void* address() const { return buffer_->address(); }  // the device's
  // Tells whether its device has failed since, and the bytes are gone.
  bool is_lost() const { return buffer_->is_lost(); }
  int64_t charged_bytes() const;
  // Takes the charge from a sole owner: the caller accounts for it from now on.
  MemoryCharge TakeCharge();

  // Fails with LIMIT_EXCEEDED if there is no room for another handle.
  absl::Status CheckAnotherName() const;
  // A handle names it, or no longer does.
  void AddName();
  void DropName();

  // Returns a buffer of this memory that counts as a reader until its last owner is gone.
  static BufferPtr Read(const std::shared_ptr<ResidentMemory>& memory);
  // Tells whether `memory` is the only pointer to it and nobody reads the bytes any more: all reads have happened
  // before. Only if nobody can get a new reader meanwhile.
  static bool IsSoleOwner(const std::shared_ptr<ResidentMemory>& memory);

 private:
  const BufferPtr buffer_;
  const int64_t own_bytes_;                       // charged for the first handle
  const std::shared_ptr<ResidentLedger> ledger_;  // null: nothing is charged
  const std::string tenant_;
  const std::string device_;
  mutable Mutex mutex_;
  int64_t names_ ABSL_GUARDED_BY(mutex_) = 0;
  MemoryCharge charge_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> readers_{0};
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_RESIDENT_TENSOR_H_
