#ifndef TENSORD_SERVER_SESSIONS_SESSION_STORE_H_
#define TENSORD_SERVER_SESSIONS_SESSION_STORE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/shares.h"
#include "server/config/live_value.h"
#include "server/sessions/resident_ledger.h"
#include "server/sessions/session.h"

namespace tensord::server {

// A call that uses a session: its lease does not end meanwhile, and begins anew afterwards. For calls whose length is
// bounded; a stream that its client may leave renews the lease as it goes instead. Move-only.
class SessionUse {
 public:
  SessionUse() = default;
  explicit SessionUse(SessionPtr session) : session_(std::move(session)) { session_->Hold(); }
  SessionUse(SessionUse&& other) noexcept : session_(std::move(other.session_)) {}
  SessionUse& operator=(SessionUse&& other) noexcept {
    std::swap(session_, other.session_);
    return *this;
  }
  ~SessionUse() {
    if (session_ != nullptr) session_->Release();
  }

  // Returns null if nothing is used.
  const SessionPtr& session() const { return session_; }

 private:
  SessionPtr session_;
};

// The sessions of all tenants. A thread of its own ends those whose lease is over. Thread-safe. Sessions may outlive it
// in calls that still read their tensors, but are closed then. Another tenant's session counts as missing.
class SessionStore {
 public:
  using Time = Session::Time;
  struct Limits {
    int64_t sessions = std::numeric_limits<int64_t>::max();
    int64_t tenant_sessions = std::numeric_limits<int64_t>::max();
    int64_t handles = std::numeric_limits<int64_t>::max();  // of one session
    ResidentLedger::Limits memory;
    absl::Duration default_lease = absl::Minutes(10);
    absl::Duration max_lease = absl::Hours(1);
    ResidentLedger::Changed resident_changed = nullptr;
    // Returns the connected peers, as Session::NamedBy has them. Asked if there is no room and somebody may have left,
    // under no lock of the store, and not again for kConnectedAge. Null: not known.
    std::function<absl::flat_hash_set<std::string>()> connected = nullptr;
  };
  static constexpr absl::Duration kConnectedAge = absl::Milliseconds(100);
  struct Stats {
    int64_t sessions = 0;
    int64_t expired = 0;  // since the start
    std::map<std::string, ResidentLedger::DeviceUse> devices;
    TensorEnds ends{};  // since the start
  };
  // An operator's view of a session.
  struct Description {
    std::string id;
    std::string tenant;
    absl::Duration lease;
    absl::Duration remaining;  // of it; the whole while a call uses the session
    Session::Counts counts;
  };

  // `clock` is asked from any thread. If it is not the system's, ClockMoved reports its moves.
  explicit SessionStore(const Limits& limits, std::function<Time()> clock = &std::chrono::steady_clock::now);
  ~SessionStore();
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;

  // Opens a session, with an id of 128 random bits. A lease of zero means the default; it is brought within a
  // millisecond and the maximum. If there are as many sessions as there may be, a forgotten one ends for it: a session
  // not named since its last connection was closed, a little while ago at least, or else for the default lease; of
  // those the one named least lately. It is one of the tenant's own if the tenant has too many. LIMIT_EXCEEDED, naming
  // sessions.count or sessions.tenant_count.
  absl::StatusOr<SessionPtr> Open(absl::string_view tenant, absl::Duration lease);
  // Returns the tenant's session of that id, its lease begun anew. SESSION_UNKNOWN.
  absl::StatusOr<SessionPtr> Find(absl::string_view tenant, absl::string_view id);
  // The same for as long as a call uses it.
  absl::StatusOr<SessionUse> Use(absl::string_view tenant, absl::string_view id);
  // Fails with SESSION_UNKNOWN.
  absl::Status Close(absl::string_view tenant, absl::string_view id);

  // Returns the session's tenant, even if the session may not be used any more; nothing if there is no such session.
  std::optional<std::string> OwnerOf(absl::string_view id) const;

  // Sets limits for later sessions, tensors and leases: existing ones beyond them stay. `resident_changed` and
  // `connected` are not taken.
  void SetLimits(const Limits& limits);
  Limits limits() const;

  // Poisons the handles of tensors whose device has failed since.
  void LoseTensors();

  void ClockMoved();
  Stats stats() const;
  // Returns each tenant's used share of its sessions and of its bytes of resident tensors.
  Shares TenantSessionShares() const;
  Shares TenantByteShares() const { return SharesOf(ledger_->Tenants(), limits().memory.tenant_bytes); }
  // Describes the sessions by id.
  std::vector<Description> Describe() const;

 private:
  using Table = absl::flat_hash_map<std::string, SessionPtr>;

  absl::StatusOr<SessionPtr> FindLocked(absl::string_view tenant, absl::string_view id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Connected = std::shared_ptr<const absl::flat_hash_set<std::string>>;

  // Returns the peers of a moment ago; null: not known.
  Connected AskConnected();
  // Tells whether a session that its client may have left may be in the way of the tenant's next one.
  bool MayHaveLeftLocked(absl::string_view tenant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFullLocked(absl::string_view tenant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration UnnamedFor(const Session& session, Time now) const;
  absl::Status MakeRoomLocked(absl::string_view tenant, const Connected& connected, std::vector<SessionPtr>* forgotten)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out one that is forgotten, of the tenant or, null, of any; false: there is none.
  bool TakeForgottenLocked(const absl::string_view* tenant, const Connected& connected,
                           std::vector<SessionPtr>* forgotten) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SessionPtr OpenLocked(std::string id, absl::string_view tenant, absl::Duration lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SessionPtr RemoveLocked(Table::iterator session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out the overdue sessions; tells when the next one is.
  std::vector<SessionPtr> TakeOverdueLocked(Time* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();

  const std::function<Time()> clock_;
  const std::function<absl::flat_hash_set<std::string>()> connected_;
  const std::shared_ptr<ResidentLedger> ledger_;
  const std::shared_ptr<LiveInt64> max_handles_;  // of each session
  Mutex connected_mutex_;
  Connected kept_connected_ ABSL_GUARDED_BY(connected_mutex_);
  Time asked_ ABSL_GUARDED_BY(connected_mutex_);  // when, for what is kept
  mutable Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Time next_ ABSL_GUARDED_BY(mutex_) = Time::max();  // what the thread waits for
  int64_t expired_ ABSL_GUARDED_BY(mutex_) = 0;
  Table sessions_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int64_t> of_tenant_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_SESSION_STORE_H_
