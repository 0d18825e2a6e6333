#ifndef TENSORD_SERVER_SESSIONS_SESSION_H_
#define TENSORD_SERVER_SESSIONS_SESSION_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/mutex.h"
#include "engine/exec/backend/backend.h"
#include "server/config/live_value.h"
#include "server/sessions/handle_claim.h"
#include "server/sessions/resident_ledger.h"
#include "server/sessions/resident_tensor.h"
#include "server/sessions/tensor_end.h"
#include "server/sessions/tensor_slot.h"
#include "server/sessions/tensor_upload.h"

namespace tensord::server {

// The state that one client keeps on the server: tensors under handles of its choice, and the lease on which they live.
// Made by SessionStore; shared with the calls that name it. A call may outlive the session's end: then it is refused
// with SESSION_UNKNOWN, and the tensors that it reads stay alive until it lets go of them. Thread-safe.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Options {
    std::string id;
    std::string tenant;
    absl::Duration lease;
    std::shared_ptr<const LiveInt64> max_handles;
    std::shared_ptr<ResidentLedger> ledger;
    std::function<Time()> clock;
  };
  struct Counts {
    int64_t handles = 0;
    int64_t bytes = 0;  // of the tensors under them; memory that two of them share counts twice
  };

  explicit Session(Options options);

  const std::string& id() const { return options_.id; }
  const std::string& tenant() const { return options_.tenant; }
  absl::Duration lease() const { return options_.lease; }
  Counts counts() const;

  // Renews the lease. Work that takes long and is worth nothing once its client is gone (an upload, a download) calls
  // this with every piece.
  void Renew();
  Time expiry() const;
  // Notes the peer that named it last, by gRPC's name; empty: none yet.
  void NamedBy(std::string peer);
  std::string named_by() const;

  // Returns a reader of a tensor, for users other than requests. HANDLE_UNKNOWN, HANDLE_INCOMPLETE for a tensor that is
  // uploaded or computed just now, HANDLE_POISONED for one whose request failed.
  absl::StatusOr<ResidentTensor> Find(absl::string_view handle) const;

  // Deletes handles, and returns the unknown ones. Earlier requests keep the tensors that they named.
  std::vector<std::string> Delete(absl::Span<const std::string> handles);

  // Claims all handles of a request at once, in the order in which requests arrive. If anything is refused, claims none
  // (but for poisoned results, see HandleRequest). NAME_INVALID, HANDLE_UNKNOWN, HANDLE_INCOMPLETE for one that is
  // being uploaded, HANDLE_DUPLICATE, LIMIT_EXCEEDED.
  absl::StatusOr<HandleClaim> Claim(const HandleRequest& request);
  // Poisons the results of a request that is refused before it claims anything.
  void Poison(const HandleRequest& request, const absl::Status& cause);

  // Begins an upload, or goes on with one that was broken off, of the same type and with the same id of its client's
  // (0: any); bytes received under another id do not count. Its bytes are charged before they are allocated.
  // NAME_INVALID, HANDLE_DUPLICATE if there is another tensor, HANDLE_INCOMPLETE if somebody else is still writing it,
  // LIMIT_EXCEEDED, OUT_OF_MEMORY.
  absl::StatusOr<TensorUpload> StartUpload(const std::string& handle, const ResidentType& type, Backend* backend,
                                           uint64_t id = 0);
  // Returns the received bytes of an upload: all, if it is complete. HANDLE_UNKNOWN.
  absl::StatusOr<int64_t> ArrivedBytes(absl::string_view handle) const;

  // Poisons the handles of tensors whose device has failed since.
  void LoseTensors();

  // ---- For the store, claims and uploads ----

  // Keeps the lease from ending while a call of bounded length uses the session; then the lease begins anew.
  void Hold() { ++holds_; }
  void Release();
  bool held() const { return holds_ > 0; }
  // Lets go of everything; from now on everything is refused. The tensors end so.
  void Close(TensorEnd end);
  bool closed() const;
  const std::shared_ptr<ResidentLedger>& ledger() const { return options_.ledger; }
  // Charges a handle that stays without a tensor, on no device.
  MemoryCharge ChargeHandle() const;
  // Takes the slot's name away where it still has it.
  void Forget(absl::string_view handle, const TensorSlotPtr& slot);
  // The upload under that name becomes a tensor. HANDLE_UNKNOWN if the name is no longer the slot's.
  absl::Status FinishUpload(absl::string_view handle, const TensorSlotPtr& slot);
  // A request that a tensor was donated to has used it up.
  void UseUp(const std::string& handle, const TensorSlotPtr& slot);
  // Gives the tensor its name back, unless it was deleted meanwhile or the name is somebody else's by now than
  // `instead_of`, which the request had put in its place; null: nothing.
  void Restore(const std::string& handle, const TensorSlotPtr& slot, const TensorSlotPtr& instead_of);

 private:
  using Table = absl::flat_hash_map<std::string, TensorSlotPtr>;

  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<TensorSlotPtr> Lookup(absl::string_view handle) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckFree(const std::string& handle) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoom(int64_t more) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<HandleClaim> ClaimLocked(const HandleRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeGivenLocked(const std::string& handle, const TensorSlotPtr& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails the slot of a tensor whose device has failed since it was made.
  void LoseIfGone(const TensorSlotPtr& slot) const;
  // Reports the ends of tensors and uploads to the ledger.
  void CountEnds(TensorEnd end, absl::Span<const TensorSlotPtr> slots) const;
  void PoisonLocked(const HandleRequest& request, const absl::Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::atomic<int64_t> expiry_;  // on the clock, in its ticks
  std::atomic<int64_t> holds_{0};
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string named_by_ ABSL_GUARDED_BY(mutex_);
  Table table_ ABSL_GUARDED_BY(mutex_);
  // Tensors donated to requests that are not over, and not deleted since: they may come back.
  absl::flat_hash_map<std::string, std::vector<TensorSlotPtr>> given_ ABSL_GUARDED_BY(mutex_);
};

using SessionPtr = std::shared_ptr<Session>;

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_SESSION_H_
