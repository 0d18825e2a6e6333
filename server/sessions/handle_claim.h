#ifndef TENSORD_SERVER_SESSIONS_HANDLE_CLAIM_H_
#define TENSORD_SERVER_SESSIONS_HANDLE_CLAIM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/sessions/tensor_slot.h"

namespace tensord::server {

class Session;

struct HandleUse {
  std::string handle;
  bool donated = false;
};

// A request's use of handles.
struct HandleRequest {
  std::vector<HandleUse> uses;     // in the order of the arguments that are handles
  std::vector<std::string> keeps;  // for its results
  // If the request fails, the handles that it was to keep stay, poisoned, also those among them that it was given:
  // requests that depend on it may have been sent already. Otherwise they are free again.
  bool poisons = false;
};

// A request's share in its session from its arrival to its end: the tensors that it reads, by their names at its
// arrival, those that it was given for good, and names for its results. Move-only; confined to its request.
//
//   claimed → (ReadyOrElse) → CheckReady → Start → Fulfil | Fail;  claimed → Fail
//
// A claim destroyed before its end fails. Made by Session::Claim.
class HandleClaim {
 public:
  struct Kept {
    ResidentType type;
    std::shared_ptr<ResidentMemory> memory;
  };

  HandleClaim() = default;
  HandleClaim(HandleClaim&& other) noexcept;
  HandleClaim& operator=(HandleClaim&& other) noexcept;
  ~HandleClaim() { GiveUp(); }

  const std::shared_ptr<Session>& session() const { return session_; }
  size_t num_uses() const { return uses_.size(); }
  size_t num_keeps() const { return keeps_.size(); }

  // Tells whether every tensor that is read is there, or will never be. If not, calls `then` once it is so, on the
  // thread that settled the last of them; the claim must stay in its place until then. If the request ends before, it
  // waits no more.
  bool ReadyOrElse(Waiter then);
  // Fails with HANDLE_POISONED, with the first cause, where a tensor will never be there.
  absl::Status CheckReady();

  // ---- When they are ready ----

  ResidentType TypeOf(size_t use) const;
  // Fail with HANDLE_POISONED where the tensor's device has failed since.
  absl::StatusOr<ResidentTensor> Read(size_t use) const;
  absl::StatusOr<std::shared_ptr<ResidentMemory>> MemoryOf(size_t use) const;
  bool IsDonated(size_t use) const { return uses_[use].donated; }
  // Tells whether the use is a donation of memory that nobody else reads, so that the run may write over it. Before
  // Read.
  bool IsWritable(size_t use) const;

  // Notes that the run begins: donated tensors do not come back.
  void Start() { started_ = true; }
  // Ends the request with its results. The caller goes on with those who waited for the results, under no lock. `kept`
  // is in the order of HandleRequest::keeps. SESSION_UNKNOWN if the session has ended meanwhile; then the request
  // failed.
  absl::Status Fulfil(std::vector<Kept> kept, Waiters* waiters);
  Waiters Fail(const absl::Status& cause);

 private:
  friend class Session;
  struct Use {
    std::string handle;
    TensorSlotPtr slot;
    bool donated = false;
    uint64_t waiting = 0;  // what it leaves the slot by; 0: it does not wait
  };
  struct Keep {
    std::string handle;
    TensorSlotPtr slot;
  };

  void GiveUp();
  void EndUses();

  std::shared_ptr<Session> session_;  // null: there is nothing to claim, or it is over
  std::vector<Use> uses_;
  std::vector<Keep> keeps_;
  bool poisons_ = false;
  bool started_ = false;
  absl::Status first_cause_;  // of what poisoned a tensor that is read
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_HANDLE_CLAIM_H_
