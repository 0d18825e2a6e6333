#ifndef TENSORD_SERVER_SESSIONS_TENSOR_SLOT_H_
#define TENSORD_SERVER_SESSIONS_TENSOR_SLOT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/mutex.h"
#include "engine/base/waiters.h"
#include "engine/exec/backend/buffer.h"
#include "server/sessions/resident_tensor.h"

namespace tensord::server {

// A function to call once, on whatever thread settled the awaited event. That thread belongs to others too: a waiter
// hands its work on, and does none of it.
using Waiter = std::function<void()>;
using Waiters = std::vector<Waiter>;

// The tensor that a handle stands for: a tensor, one that a request in progress is to make, or one that is being
// uploaded.
//
//   kPromised → kReady | kFailed
//   kUploading → kReady
//   kReady, kUploading → kFailed (Lose)
//
// Owned by the session's table and by the requests that named it while it was there. Thread-safe.
class TensorSlot {
 public:
  enum class State : uint8_t { kPromised, kUploading, kReady, kFailed };
  // An upload: where its bytes go.
  struct Upload {
    std::shared_ptr<ResidentMemory> memory;
    std::shared_ptr<Buffer> buffer;  // of `memory`; null until that is allocated
    int64_t arrived = 0;
    uint64_t id = 0;  // the client's, of what has arrived
    bool has_writer = true;
  };

  static std::shared_ptr<TensorSlot> Promise() {
    return std::make_shared<TensorSlot>(State::kPromised, ResidentType());
  }
  static std::shared_ptr<TensorSlot> ForUpload(ResidentType type, uint64_t id) {
    return std::make_shared<TensorSlot>(State::kUploading, std::move(type), id);
  }
  TensorSlot(State state, ResidentType type, uint64_t upload_id = 0);
  ~TensorSlot();

  State state() const;
  // Returns the type of a slot that is ready or being uploaded.
  ResidentType type() const;
  // Returns the cause of a failed slot.
  absl::Status cause() const;
  // Returns a reader of one that is ready.
  std::optional<ResidentTensor> Read() const;
  // Returns the owner of its bytes, if it is ready.
  std::shared_ptr<ResidentMemory> memory() const;

  // A request that reads it, from when it arrives until it has ended: nobody may write over it meanwhile.
  void AddUse();
  void EndUse();
  // Tells whether one use is all there is, of memory that nobody else reads. For a slot that is in no table any more.
  bool IsUsedByOneAlone() const;

  // Adds a waiter and returns its id for Leave. Returns 0 if the slot is settled already; else `waiter` is among those
  // that Fulfil or Fail returns, unless it leaves.
  uint64_t Await(Waiter waiter);
  // Removes a waiter. Does nothing if the slot is settled.
  void Leave(uint64_t waiter);
  // Settles a promise. The caller goes on with the waiters, under no lock.
  Waiters Fulfil(ResidentType type, std::shared_ptr<ResidentMemory> memory);
  // `charge` is for the handle of one that stays.
  Waiters Fail(absl::Status cause, MemoryCharge charge = {});

  // Tells whether there is a tensor, or a part of one, whose device has failed since.
  bool IsLost() const;
  // Fails such a slot, if it still is one; false if not. `charge` as above.
  bool Lose(absl::Status cause, MemoryCharge charge);

  // ---- Uploads ----
  void SetMemory(std::shared_ptr<ResidentMemory> memory, std::shared_ptr<Buffer> buffer);
  // Returns nothing if there is a writer already. At most one at a time. Bytes that came with another id count as not
  // arrived; 0 takes any.
  std::optional<Upload> TakeWriter(uint64_t id);
  void ReturnWriter();
  void SetArrived(int64_t bytes);
  int64_t arrived() const;
  void FinishUpload();

 private:
  Waiters Settle(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsLostLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t version_;  // no other slot's
  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  ResidentType type_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ResidentMemory> memory_ ABSL_GUARDED_BY(mutex_);
  MemoryCharge failed_charge_ ABSL_GUARDED_BY(mutex_);
  absl::Status cause_ ABSL_GUARDED_BY(mutex_);
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  tensord::Waiters<Waiter> waiting_ ABSL_GUARDED_BY(mutex_);
  Upload upload_ ABSL_GUARDED_BY(mutex_);
};

using TensorSlotPtr = std::shared_ptr<TensorSlot>;

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_TENSOR_SLOT_H_
