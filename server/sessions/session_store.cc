#include "server/sessions/session_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/random_id.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::server {
namespace {

// A client whose connection broke has that long to come back before its sessions may end for others.
constexpr absl::Duration kTimeToReturn = absl::Seconds(5);

constexpr absl::Duration kShortestLease = absl::Milliseconds(1);

absl::Status UnknownSession() {
  return Refuse(Refusal::kSessionUnknown,
                "there is no such session: it was closed, or its lease ended; open another and upload again");
}

}  // namespace

SessionStore::SessionStore(const Limits& limits, std::function<Time()> clock)
    : clock_(std::move(clock)),
      connected_(limits.connected),
      ledger_(std::make_shared<ResidentLedger>(limits.memory, limits.resident_changed)),
      max_handles_(std::make_shared<LiveInt64>(limits.handles)),
      limits_(limits),
      thread_([this] { Loop(); }) {}

SessionStore::~SessionStore() {
  Table sessions;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    sessions.swap(sessions_);
  }
  changed_.SignalAll();
  thread_.join();
  for (const auto& [id, session] : sessions) session->Close(TensorEnd::kSessionClosed);
}

absl::StatusOr<SessionPtr> SessionStore::Open(absl::string_view tenant, absl::Duration lease) {
  ASSIGN_OR_RETURN(std::string id, NewRandomId());
  std::vector<SessionPtr> forgotten;
  absl::StatusOr<SessionPtr> session;
  bool may_have_left = false;
  if (connected_ != nullptr) {
    MutexLock lock(&mutex_);
    may_have_left = MayHaveLeftLocked(tenant);
  }
  const Connected connected = may_have_left ? AskConnected() : nullptr;
  {
    MutexLock lock(&mutex_);
    const absl::Status room = MakeRoomLocked(tenant, connected, &forgotten);
    session = room.ok() ? absl::StatusOr<SessionPtr>(OpenLocked(std::move(id), tenant, lease)) : room;
  }
  for (const SessionPtr& closed : forgotten) closed->Close(TensorEnd::kLeaseExpired);
  return session;
}

SessionStore::Connected SessionStore::AskConnected() {
  MutexLock lock(&connected_mutex_);
  const Time now = clock_();
  if (kept_connected_ == nullptr || absl::FromChrono(now - asked_) >= kConnectedAge) {
    kept_connected_ = std::make_shared<const absl::flat_hash_set<std::string>>(connected_());
    asked_ = now;
  }
  return kept_connected_;
}

absl::Duration SessionStore::UnnamedFor(const Session& session, Time now) const {
  return absl::FromChrono(now - session.expiry()) + session.lease();
}

bool SessionStore::IsFullLocked(absl::string_view tenant) const {
  const auto of_tenant = of_tenant_.find(tenant);
  return static_cast<int64_t>(sessions_.size()) >= limits_.sessions ||
         (of_tenant != of_tenant_.end() && of_tenant->second >= limits_.tenant_sessions);
}

bool SessionStore::MayHaveLeftLocked(absl::string_view tenant) const {
  if (!IsFullLocked(tenant)) return false;
  const Time now = clock_();
  return std::any_of(sessions_.begin(), sessions_.end(), [this, now](const auto& entry) {
    return !entry.second->held() && UnnamedFor(*entry.second, now) >= kTimeToReturn;
  });
}

absl::Status SessionStore::MakeRoomLocked(absl::string_view tenant, const Connected& connected,
                                          std::vector<SessionPtr>* forgotten) {
  const auto of_tenant = of_tenant_.find(tenant);
  const int64_t own = of_tenant == of_tenant_.end() ? 0 : of_tenant->second;
  if (own >= limits_.tenant_sessions && !TakeForgottenLocked(&tenant, connected, forgotten)) {
    return RefuseLimit("sessions.tenant_count", limits_.tenant_sessions, own + 1, "sessions of the tenant");
  }
  const int64_t sessions = static_cast<int64_t>(sessions_.size());
  if (sessions >= limits_.sessions && !TakeForgottenLocked(nullptr, connected, forgotten)) {
    return RefuseLimit("sessions.count", limits_.sessions, sessions + 1, "sessions");
  }
  return absl::OkStatus();
}

bool SessionStore::TakeForgottenLocked(const absl::string_view* tenant, const Connected& connected,
                                       std::vector<SessionPtr>* forgotten) {
  const Time now = clock_();
  // Sessions whose connection is gone come first, then the rest by the time since they were named.
  using Rank = std::pair<bool, absl::Duration>;
  const auto rank = [&](const Session& session) {
    const absl::Duration unnamed = UnnamedFor(session, now);
    const bool is_left = connected != nullptr && unnamed >= kTimeToReturn && !connected->contains(session.named_by());
    return Rank(is_left, unnamed);
  };
  auto first = sessions_.end();
  Rank highest(false, absl::ZeroDuration());
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    const Session& session = *it->second;
    if (session.held() || (tenant != nullptr && session.tenant() != *tenant)) continue;
    const Rank ranked = rank(session);
    if (!ranked.first && ranked.second < limits_.default_lease) continue;
    if (first == sessions_.end() || ranked > highest) {
      first = it;
      highest = ranked;
    }
  }
  if (first == sessions_.end()) return false;
  forgotten->push_back(RemoveLocked(first));
  ++expired_;
  return true;
}

SessionPtr SessionStore::OpenLocked(std::string id, absl::string_view tenant, absl::Duration lease) {
  if (lease == absl::ZeroDuration()) lease = limits_.default_lease;
  lease = std::clamp(lease, kShortestLease, std::max(limits_.max_lease, kShortestLease));
  ++of_tenant_[tenant];
  const auto session = std::make_shared<Session>(Session::Options{.id = std::move(id),
                                                                  .tenant = std::string(tenant.data(), tenant.size()),
                                                                  .lease = lease,
                                                                  .max_handles = max_handles_,
                                                                  .ledger = ledger_,
                                                                  .clock = clock_});
  sessions_.emplace(session->id(), session);
  if (session->expiry() < next_) changed_.SignalAll();
  return session;
}

SessionPtr SessionStore::RemoveLocked(Table::iterator found) {
  SessionPtr session = std::move(found->second);
  sessions_.erase(found);
  const auto of_tenant = of_tenant_.find(session->tenant());
  if (--of_tenant->second == 0) of_tenant_.erase(of_tenant);
  return session;
}

absl::StatusOr<SessionPtr> SessionStore::FindLocked(absl::string_view tenant, absl::string_view id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second->tenant() != tenant) return UnknownSession();
  const SessionPtr& session = found->second;
  // The thread that ends it may not have come to it yet.
  if (!session->held() && session->expiry() <= clock_()) return UnknownSession();
  session->Renew();
  return session;
}

absl::StatusOr<SessionPtr> SessionStore::Find(absl::string_view tenant, absl::string_view id) {
  MutexLock lock(&mutex_);
  return FindLocked(tenant, id);
}

absl::StatusOr<SessionUse> SessionStore::Use(absl::string_view tenant, absl::string_view id) {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(SessionPtr session, FindLocked(tenant, id));
  return SessionUse(std::move(session));
}

absl::Status SessionStore::Close(absl::string_view tenant, absl::string_view id) {
  SessionPtr session;
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(FindLocked(tenant, id).status());
    session = RemoveLocked(sessions_.find(id));
  }
  session->Close(TensorEnd::kSessionClosed);
  return absl::OkStatus();
}

std::optional<std::string> SessionStore::OwnerOf(absl::string_view id) const {
  MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return std::nullopt;
  return found->second->tenant();
}

void SessionStore::SetLimits(const Limits& limits) {
  ledger_->SetLimits(limits.memory);
  *max_handles_ = limits.handles;
  MutexLock lock(&mutex_);
  limits_ = limits;
}

SessionStore::Limits SessionStore::limits() const {
  MutexLock lock(&mutex_);
  return limits_;
}

void SessionStore::LoseTensors() {
  std::vector<SessionPtr> sessions;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, session] : sessions_) sessions.push_back(session);
  }
  for (const SessionPtr& session : sessions) session->LoseTensors();
}

void SessionStore::ClockMoved() {
  MutexLock lock(&mutex_);
  changed_.SignalAll();
}

SessionStore::Stats SessionStore::stats() const {
  Stats stats{.sessions = 0, .expired = 0, .devices = ledger_->Devices(), .ends = ledger_->ends()};
  MutexLock lock(&mutex_);
  stats.sessions = static_cast<int64_t>(sessions_.size());
  stats.expired = expired_;
  return stats;
}

Shares SessionStore::TenantSessionShares() const {
  MutexLock lock(&mutex_);
  return SharesOf(of_tenant_, limits_.tenant_sessions);
}

std::vector<SessionStore::Description> SessionStore::Describe() const {
  std::vector<SessionPtr> sessions;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, session] : sessions_) sessions.push_back(session);
  }
  std::sort(sessions.begin(), sessions.end(),
            [](const SessionPtr& a, const SessionPtr& b) { return a->id() < b->id(); });
  const Time now = clock_();
  std::vector<Description> descriptions;
  for (const SessionPtr& session : sessions) {
    const absl::Duration remaining =
        session->held() ? session->lease() : std::max(absl::ZeroDuration(), absl::FromChrono(session->expiry() - now));
    descriptions.push_back({.id = session->id(),
                            .tenant = session->tenant(),
                            .lease = session->lease(),
                            .remaining = remaining,
                            .counts = session->counts()});
  }
  return descriptions;
}

std::vector<SessionPtr> SessionStore::TakeOverdueLocked(Time* next) {
  const Time now = clock_();
  *next = Time::max();
  std::vector<SessionPtr> overdue;
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const auto session = it++;
    // One that is held gets a whole lease when it is let go of.
    const Time expiry =
        session->second->held() ? now + absl::ToChronoNanoseconds(session->second->lease()) : session->second->expiry();
    if (expiry > now) {
      *next = std::min(*next, expiry);
      continue;
    }
    overdue.push_back(RemoveLocked(session));
    ++expired_;
  }
  return overdue;
}

void SessionStore::Loop() {
  while (true) {
    std::vector<SessionPtr> overdue;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      overdue = TakeOverdueLocked(&next_);
      if (overdue.empty() && next_ == Time::max()) {
        changed_.Wait(&mutex_);
      } else if (overdue.empty()) {
        // In the system's time, whatever the clock says: other clocks use ClockMoved.
        changed_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + (next_ - clock_()));
      }
    }
    for (const SessionPtr& session : overdue) session->Close(TensorEnd::kLeaseExpired);
  }
}

}  // namespace tensord::server
