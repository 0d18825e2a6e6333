// Sessions, leases, quotas and the life of resident tensors, on a clock that the test moves.
#include "server/sessions/session_store.h"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "engine/base/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/reason_of.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The limit that refused, with its value and what was asked for.
template <typename T>
std::string LimitOf(const absl::StatusOr<T>& result) {
  const auto detail = DetailOf(result.status());
  if (!detail.has_value() || detail->reason != "LIMIT_EXCEEDED") return ReasonOf(result.status());
  return detail->limit + " " + std::to_string(detail->limit_value) + " < " + std::to_string(detail->actual_value);
}

class FakeClock {
 public:
  std::function<SessionStore::Time()> AsFunction() {
    return [this] { return SessionStore::Time(std::chrono::seconds(1000 + seconds_.load())); };
  }
  void Advance(int64_t seconds, SessionStore& store) {
    seconds_ += seconds;
    store.ClockMoved();
  }

 private:
  std::atomic<int64_t> seconds_{0};
};

bool WaitFor(const std::function<bool()>& condition) {
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1); !condition();) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

ResidentType Floats(int64_t count) {
  return {.device = "cpu:0", .type = {DType::kF32, {count}}, .order = Order::kColumnMajor};
}

class SessionStoreTest : public ::testing::Test {
 protected:
  SessionPtr Open(SessionStore& store, absl::string_view tenant = "a") {
    absl::StatusOr<SessionPtr> session = store.Open(tenant, absl::ZeroDuration());
    EXPECT_TRUE(session.ok()) << session.status();
    return *session;
  }
  // A tensor of ones, uploaded.
  absl::Status Put(Session& session, const std::string& handle, int64_t count) {
    absl::StatusOr<TensorUpload> upload = session.StartUpload(handle, Floats(count), backend_.get());
    if (!upload.ok()) return upload.status();
    for (int64_t i = 0; i < count; ++i) reinterpret_cast<float*>(upload->bytes())[i] = 1;
    upload->Advance(4 * count);
    return upload->Commit();
  }
  // Returns a run's results for the handles of a claim: tensors of `count` floats each.
  std::vector<HandleClaim::Kept> Computed(Session& session, size_t results, int64_t count) {
    std::vector<HandleClaim::Kept> kept;
    for (size_t i = 0; i < results; ++i) {
      const auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(count), 2.0f);
      kept.push_back({.type = Floats(count),
                      .memory = std::make_shared<ResidentMemory>(
                          *backend_->Import(values->data(), 4 * count, values),
                          *session.ledger()->Charge(session.tenant(), "cpu:0", ChargedBytes(4 * count)))});
    }
    return kept;
  }
  void Go(const Waiters& waiters) {
    for (const Waiter& waiter : waiters) waiter();
  }

  static ResidentLedger::DeviceUse CpuUse(const SessionStore& store) {
    const auto devices = store.stats().devices;
    const auto found = devices.find("cpu:0");
    return found == devices.end() ? ResidentLedger::DeviceUse{} : found->second;
  }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
  FakeClock clock_;
};

TEST_F(SessionStoreTest, IdsAreLongAndDiffer) {
  SessionStore store({});
  const SessionPtr first = Open(store), second = Open(store);
  EXPECT_EQ(first->id().size(), 32u);
  EXPECT_EQ(first->id().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(first->id(), second->id());
  EXPECT_EQ(store.stats().sessions, 2);
}

// A request has its tensors for as long as it lasts, and their device may fail meanwhile.
TEST_F(SessionStoreTest, AClaimedTensorMayBeLost) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  const auto lost = std::make_shared<std::atomic<bool>>(false);
  float value = 1;
  const auto buffer = std::make_shared<Buffer>(&value, 4, nullptr, lost);
  std::vector<HandleClaim::Kept> kept;
  kept.push_back(
      {.type = Floats(1),
       .memory = std::make_shared<ResidentMemory>(buffer, *session->ledger()->Charge("a", "cpu:0", ChargedBytes(4)))});
  HandleClaim making = *session->Claim({.keeps = {"x"}});
  Waiters waiters;
  ASSERT_TRUE(making.Fulfil(std::move(kept), &waiters).ok());
  HandleClaim claim = *session->Claim({.uses = {{"x"}}});
  ASSERT_TRUE(claim.CheckReady().ok());
  const auto read = claim.Read(0);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->buffer->is_lost());
  *lost = true;
  EXPECT_TRUE(read->buffer->is_lost()) << "whoever reads it has to know";
  store.LoseTensors();
  EXPECT_EQ(ReasonOf(claim.Read(0)), "HANDLE_POISONED");
  EXPECT_EQ(ReasonOf(claim.MemoryOf(0)), "HANDLE_POISONED");
  EXPECT_EQ(claim.TypeOf(0).num_bytes(), 4);
}

TEST_F(SessionStoreTest, LeasesAreBroughtWithinBounds) {
  SessionStore store({.default_lease = absl::Seconds(10), .max_lease = absl::Seconds(60)});
  EXPECT_EQ((*store.Open("a", absl::ZeroDuration()))->lease(), absl::Seconds(10));
  EXPECT_EQ((*store.Open("a", absl::Seconds(20)))->lease(), absl::Seconds(20));
  EXPECT_EQ((*store.Open("a", absl::Hours(20)))->lease(), absl::Seconds(60));
  EXPECT_EQ((*store.Open("a", -absl::Hours(20)))->lease(), absl::Milliseconds(1));
}

TEST_F(SessionStoreTest, ALeaseEndsUnlessACallRenewsIt) {
  SessionStore store({.default_lease = absl::Seconds(10)}, clock_.AsFunction());
  const SessionPtr session = Open(store);
  ASSERT_TRUE(Put(*session, "x", 4).ok());
  clock_.Advance(9, store);
  EXPECT_TRUE(store.Find("a", session->id()).ok());
  clock_.Advance(9, store);
  session->Renew();
  clock_.Advance(9, store);
  EXPECT_EQ(store.Describe().at(0).remaining, absl::Seconds(1));
  EXPECT_TRUE(store.Find("a", session->id()).ok());
  clock_.Advance(10, store);
  EXPECT_EQ(ReasonOf(store.Find("a", session->id())), "SESSION_UNKNOWN") << "also before the thread comes to it";
  EXPECT_TRUE(WaitFor([&] { return store.stats().sessions == 0 && session->closed() && CpuUse(store).bytes == 0; }));
  EXPECT_EQ(store.stats().expired, 1);
  EXPECT_EQ(ReasonOf(session->Find("x")), "SESSION_UNKNOWN");
  EXPECT_EQ(CpuUse(store).tensors, 0);
}

TEST_F(SessionStoreTest, ACallThatUsesASessionHoldsIt) {
  SessionStore store({.default_lease = absl::Seconds(10)}, clock_.AsFunction());
  const SessionPtr session = Open(store), other = Open(store);
  {
    absl::StatusOr<SessionUse> use = store.Use("a", session->id());
    ASSERT_TRUE(use.ok());
    clock_.Advance(100, store);
    EXPECT_TRUE(WaitFor([&] { return store.stats().expired == 1; })) << "the other one";
    EXPECT_FALSE(session->closed());
    EXPECT_TRUE(store.Find("a", session->id()).ok());
  }
  clock_.Advance(9, store);
  EXPECT_TRUE(store.Find("a", session->id()).ok()) << "a whole lease begins when the call is over";
  clock_.Advance(10, store);
  EXPECT_TRUE(WaitFor([&] { return store.stats().sessions == 0; }));
}

TEST_F(SessionStoreTest, TheSystemsClockEndsLeasesToo) {
  SessionStore store({.max_lease = absl::Milliseconds(1)});
  Open(store);
  EXPECT_TRUE(WaitFor([&] { return store.stats().sessions == 0; }));
}

TEST_F(SessionStoreTest, AnotherTenantsSessionIsNone) {
  SessionStore store({});
  const SessionPtr session = Open(store, "a");
  EXPECT_EQ(ReasonOf(store.Find("b", session->id())), "SESSION_UNKNOWN");
  EXPECT_EQ(store.Find("b", session->id()).status(), store.Find("b", "nonsense").status());
  EXPECT_EQ(ReasonOf(store.Close("b", session->id())), "SESSION_UNKNOWN");
  EXPECT_TRUE(store.Close("a", session->id()).ok());
  EXPECT_EQ(ReasonOf(store.Close("a", session->id())), "SESSION_UNKNOWN");
}

TEST_F(SessionStoreTest, SessionsAreCounted) {
  SessionStore store({.sessions = 3, .tenant_sessions = 2});
  const SessionPtr first = Open(store, "a");
  Open(store, "a");
  EXPECT_EQ(LimitOf(store.Open("a", {})), "sessions.tenant_count 2 < 3");
  Open(store, "b");
  EXPECT_EQ(LimitOf(store.Open("b", {})), "sessions.count 3 < 4");
  EXPECT_TRUE(store.Close("a", first->id()).ok());
  EXPECT_TRUE(store.Open("a", {}).ok());
}

TEST_F(SessionStoreTest, ForgottenSessionsLockNobodyOut) {
  SessionStore store(
      {.sessions = 4, .tenant_sessions = 3, .default_lease = absl::Seconds(10), .max_lease = absl::Hours(1)},
      clock_.AsFunction());
  std::vector<SessionPtr> a;
  for (int i = 0; i < 3; ++i) {
    a.push_back(*store.Open("a", absl::Hours(1)));
    ASSERT_TRUE(Put(*a.back(), "x", 4).ok());
    clock_.Advance(1, store);
  }
  EXPECT_EQ(LimitOf(store.Open("a", {})), "sessions.tenant_count 3 < 4") << "they may be in use";
  clock_.Advance(8, store);
  EXPECT_TRUE(store.Find("a", a[0]->id()).ok());
  EXPECT_TRUE(store.Use("a", a[1]->id()).ok());
  EXPECT_EQ(LimitOf(store.Open("a", {})), "sessions.tenant_count 3 < 4") << "the third is unnamed for 9 s";
  clock_.Advance(1, store);
  ASSERT_TRUE(store.Open("a", absl::Hours(1)).ok());
  EXPECT_TRUE(a[2]->closed());
  EXPECT_FALSE(a[0]->closed() || a[1]->closed());
  EXPECT_EQ(store.stats().expired, 1);
  EXPECT_EQ(store.stats().ends[static_cast<size_t>(TensorEnd::kLeaseExpired)], 1);

  // Another tenant gets in where all places are taken by sessions that nobody names.
  ASSERT_TRUE(store.Open("b", absl::Hours(1)).ok());
  EXPECT_EQ(LimitOf(store.Open("c", {})), "sessions.count 4 < 5");
  const SessionUse in_use = *store.Use("a", a[0]->id());
  clock_.Advance(9, store);
  EXPECT_TRUE(store.Open("c", {}).ok());
  EXPECT_TRUE(a[1]->closed()) << "unnamed for the longest time";
  EXPECT_FALSE(a[0]->closed()) << "a call uses it";
}

TEST_F(SessionStoreTest, SessionsOfClosedConnectionsEndFirst) {
  absl::flat_hash_set<std::string> connected = {"stays", "leaves"};
  SessionStore store({.sessions = 3, .connected = [&] { return connected; }}, clock_.AsFunction());
  const SessionPtr oldest = Open(store, "a"), left = Open(store, "a"), returns = Open(store, "a");
  oldest->NamedBy("stays");
  left->NamedBy("leaves");
  returns->NamedBy("leaves");
  connected = {"stays", "another"};
  EXPECT_EQ(LimitOf(store.Open("b", {})), "sessions.count 3 < 4") << "they may come back";
  clock_.Advance(5, store);
  (*store.Find("a", returns->id()))->NamedBy("another");
  const SessionPtr b = Open(store, "b");
  EXPECT_TRUE(left->closed());
  EXPECT_FALSE(oldest->closed() || returns->closed());
  EXPECT_EQ(LimitOf(store.Open("b", {})), "sessions.count 3 < 4");
}

// To know the connected peers takes a call of the system for each connection, and calls open sessions again and again.
TEST_F(SessionStoreTest, WhoIsConnectedIsAskedSeldomAndUnderNoLock) {
  int asked = 0;
  const SessionStore* asks = nullptr;
  SessionStore store({.sessions = 2,
                      .connected =
                          [&] {
                            ++asked;
                            EXPECT_EQ(asks->stats().sessions, 2);
                            return absl::flat_hash_set<std::string>{"stays"};
                          }},
                     clock_.AsFunction());
  asks = &store;
  for (int i = 0; i < 2; ++i) Open(store, "a")->NamedBy("stays");
  const auto open = [&] {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(LimitOf(store.Open("b", {})), "sessions.count 2 < 3");
  };
  open();
  EXPECT_EQ(asked, 0) << "nobody has been away for long enough";
  clock_.Advance(5, store);
  open();
  EXPECT_EQ(asked, 1);
  clock_.Advance(1, store);
  open();
  EXPECT_EQ(asked, 2);
}

TEST_F(SessionStoreTest, HandlesAreCounted) {
  SessionStore store({.handles = 2});
  const SessionPtr session = Open(store);
  ASSERT_TRUE(Put(*session, "x", 1).ok());
  EXPECT_EQ(LimitOf(session->Claim({.keeps = {"y", "z"}})), "sessions.handles 2 < 3");
  HandleClaim claim = *session->Claim({.uses = {{"x", true}}, .keeps = {"y", "z"}});
  EXPECT_EQ(LimitOf(absl::StatusOr<int>(Put(*session, "w", 1))), "sessions.handles 2 < 3");
  Go(claim.Fail(absl::CancelledError("")));
  EXPECT_EQ(session->counts().handles, 1);
}

TEST_F(SessionStoreTest, BytesAreCountedByTenantAndDevice) {
  SessionStore store({.memory = {.tenant_bytes = 6400, .device_bytes = 9600}});
  const SessionPtr a = Open(store, "a"), more_of_a = Open(store, "a"), b = Open(store, "b");
  ASSERT_TRUE(Put(*a, "x", 1200).ok());
  EXPECT_EQ(LimitOf(absl::StatusOr<int>(Put(*more_of_a, "y", 416))), "sessions.tenant_bytes 6400 < 6464");
  EXPECT_EQ(more_of_a->counts().handles, 0) << "a refused upload leaves no handle";
  EXPECT_EQ(LimitOf(absl::StatusOr<int>(Put(*b, "x", 1216))), "sessions.device_bytes 9600 < 9664");
  EXPECT_TRUE(Put(*b, "x", 1200).ok());
  EXPECT_EQ(CpuUse(store).bytes, 9600);
  EXPECT_EQ(CpuUse(store).tensors, 2);
  EXPECT_THAT(a->Delete({"x"}), IsEmpty());
  EXPECT_TRUE(Put(*more_of_a, "y", 416).ok());
  // 2^56 bytes, the most that a tensor may have: refused before anything is allocated.
  EXPECT_EQ(ReasonOf(Put(*a, "z", int64_t{1} << 54)), "LIMIT_EXCEEDED");
}

TEST_F(SessionStoreTest, WhatIsBeyondLowerLimitsStaysAndNothingIsAdded) {
  SessionStore store({.memory = {.tenant_bytes = 6400, .device_bytes = 9600}});
  const SessionPtr session = Open(store), other = Open(store);
  ASSERT_TRUE(Put(*session, "x", 1600).ok());
  const absl::Duration lease = session->lease();
  store.SetLimits({.sessions = 1,
                   .handles = 1,
                   .memory = {.tenant_bytes = 3200, .device_bytes = 4800},
                   .default_lease = absl::Seconds(5),
                   .max_lease = absl::Seconds(7)});
  EXPECT_EQ(session->lease(), lease);
  EXPECT_TRUE(session->Find("x").ok());
  EXPECT_EQ(LimitOf(store.Open("a", {})), "sessions.count 1 < 3");
  EXPECT_EQ(LimitOf(absl::StatusOr<int>(Put(*session, "y", 1))), "sessions.handles 1 < 2");
  EXPECT_EQ(LimitOf(absl::StatusOr<int>(Put(*other, "y", 1))), "sessions.device_bytes 4800 < 7424");
  EXPECT_THAT(session->Delete({"x"}), IsEmpty());
  EXPECT_TRUE(Put(*other, "y", 800).ok());
  EXPECT_TRUE(store.Close("a", session->id()).ok());
  EXPECT_TRUE(store.Close("a", other->id()).ok());
  EXPECT_EQ((*store.Open("a", absl::Hours(1)))->lease(), absl::Seconds(7));
}

TEST_F(SessionStoreTest, HandlesHaveNamesLikeGraphsHave) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  for (const std::string& name : {std::string(), std::string(257, 'x'), std::string("\xff"), std::string("a\nb")}) {
    EXPECT_EQ(ReasonOf(Put(*session, name, 1)), "NAME_INVALID");
    EXPECT_EQ(ReasonOf(session->Claim({.keeps = {name}})), "NAME_INVALID");
  }
  EXPECT_TRUE(Put(*session, std::string(256, 'x'), 1).ok());
  EXPECT_TRUE(Put(*session, "layer:0/größe", 1).ok());
}

TEST_F(SessionStoreTest, AReaderKeepsWhatIsDeleted) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  ASSERT_TRUE(Put(*session, "x", 4).ok());
  absl::StatusOr<ResidentTensor> tensor = session->Find("x");
  ASSERT_TRUE(tensor.ok());
  EXPECT_THAT(session->Delete({"x", "none"}), ElementsAre("none"));
  EXPECT_EQ(ReasonOf(session->Find("x")), "HANDLE_UNKNOWN");
  ASSERT_TRUE(store.Close("a", session->id()).ok());
  EXPECT_EQ(static_cast<const float*>(tensor->buffer->address())[3], 1);
  EXPECT_EQ(CpuUse(store).bytes, kHandleBytes) << "it takes memory still";
  tensor->buffer = nullptr;
  EXPECT_EQ(CpuUse(store).bytes, 0);
}

TEST_F(SessionStoreTest, AnUploadGoesOnWhereItWasBrokenOff) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  {
    TensorUpload upload = *session->StartUpload("x", Floats(4), backend_.get());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(upload.bytes()) % 64, 0u);
    std::memset(upload.bytes(), 1, 8);
    upload.Advance(8);
    EXPECT_EQ(ReasonOf(upload.Commit()), "HANDLE_INCOMPLETE");
    EXPECT_EQ(ReasonOf(session->StartUpload("x", Floats(4), backend_.get())), "HANDLE_INCOMPLETE") << "two writers";
  }
  EXPECT_EQ(*session->ArrivedBytes("x"), 8);
  EXPECT_EQ(ReasonOf(session->Find("x")), "HANDLE_INCOMPLETE");
  EXPECT_EQ(ReasonOf(session->Claim({.uses = {{"x"}}})), "HANDLE_INCOMPLETE");
  EXPECT_EQ(ReasonOf(session->Claim({.keeps = {"x"}})), "HANDLE_DUPLICATE");
  EXPECT_EQ(ReasonOf(session->StartUpload("x", Floats(5), backend_.get())), "HANDLE_DUPLICATE");
  EXPECT_EQ(CpuUse(store).bytes, kHandleBytes) << "charged in full from the beginning";

  TensorUpload again = *session->StartUpload("x", Floats(4), backend_.get());
  EXPECT_EQ(again.arrived(), 8);
  std::memset(again.bytes() + 8, 2, 8);
  again.Advance(8);
  ASSERT_TRUE(again.Commit().ok());
  EXPECT_EQ(*session->ArrivedBytes("x"), 16);
  const ResidentTensor tensor = *session->Find("x");
  EXPECT_EQ(static_cast<const char*>(tensor.buffer->address())[7], 1);
  EXPECT_EQ(static_cast<const char*>(tensor.buffer->address())[8], 2);
  EXPECT_EQ(ReasonOf(session->StartUpload("x", Floats(4), backend_.get())), "HANDLE_DUPLICATE");
}

TEST_F(SessionStoreTest, OfAnUploadWithAnotherIdNothingHasArrived) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  const auto begin = [&](uint64_t id) {
    TensorUpload upload = *session->StartUpload("x", Floats(4), backend_.get(), id);
    const int64_t arrived = upload.arrived();
    upload.Rewind(0);
    upload.Advance(8);
    return arrived;
  };
  EXPECT_EQ(begin(7), 0);
  EXPECT_EQ(begin(7), 8);
  EXPECT_EQ(begin(0), 8) << "goes on with any";
  EXPECT_EQ(begin(7), 8);
  EXPECT_EQ(begin(8), 0);
  EXPECT_EQ(begin(7), 0);
  session->Delete(std::vector<std::string>{"x"});
  EXPECT_EQ(begin(0), 0);
  EXPECT_EQ(begin(7), 0);
}

TEST_F(SessionStoreTest, AnUploadThatIsDroppedDeletedOrClosedLeavesNothing) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  {
    TensorUpload dropped = *session->StartUpload("x", Floats(4), backend_.get());
    dropped.Drop();
    EXPECT_EQ(session->counts().handles, 0);
    TensorUpload deleted = *session->StartUpload("x", Floats(4), backend_.get());
    session->Delete({"x"});
    deleted.Advance(16);
    EXPECT_EQ(ReasonOf(deleted.Commit()), "HANDLE_UNKNOWN");
    TensorUpload late = *session->StartUpload("y", Floats(4), backend_.get());
    ASSERT_TRUE(store.Close("a", session->id()).ok());
    std::memset(late.bytes(), 0, 16);  // still ours
    late.Advance(16);
    EXPECT_EQ(ReasonOf(late.Commit()), "SESSION_UNKNOWN");
    EXPECT_EQ(ReasonOf(session->StartUpload("z", Floats(4), backend_.get())), "SESSION_UNKNOWN");
  }
  EXPECT_EQ(CpuUse(store).bytes, 0);
  EXPECT_EQ(CpuUse(store).tensors, 0);
}

TEST_F(SessionStoreTest, ARefusedRequestLeavesNoHandleReserved) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  ASSERT_TRUE(Put(*session, "x", 1).ok());
  EXPECT_EQ(ReasonOf(session->Claim({.uses = {{"x", true}, {"none"}}, .keeps = {"y"}})), "HANDLE_UNKNOWN");
  EXPECT_EQ(ReasonOf(session->Claim({.uses = {{"x", true}}, .keeps = {"y", "y"}})), "HANDLE_DUPLICATE");
  EXPECT_EQ(ReasonOf(session->Claim({.uses = {{"x", true}, {"x", true}}})), "HANDLE_UNKNOWN") << "it is given once";
  EXPECT_EQ(session->counts().handles, 1);
  EXPECT_TRUE(session->Find("x").ok());

  HandleClaim claim = *session->Claim({.uses = {{"x", true}}, .keeps = {"x", "y"}});
  EXPECT_EQ(ReasonOf(session->Find("x")), "HANDLE_INCOMPLETE") << "it will be the result";
  EXPECT_EQ(ReasonOf(session->Claim({.keeps = {"y"}})), "HANDLE_DUPLICATE");
  Go(claim.Fail(Refuse(Refusal::kQueueFull, "")));
  EXPECT_TRUE(session->Find("x").ok()) << "a request that did not start gives back what was donated";
  EXPECT_EQ(ReasonOf(session->Find("y")), "HANDLE_UNKNOWN");

  claim = *session->Claim({.uses = {{"x", true}}, .keeps = {"y"}});
  claim.Start();
  Go(claim.Fail(Refuse(Refusal::kInternal, "")));
  EXPECT_EQ(session->counts().handles, 0) << "one that started has used it up";
  EXPECT_EQ(CpuUse(store).bytes, 0);
}

TEST_F(SessionStoreTest, ANextStateThatFailsDoesNotLeaveTheLastOne) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  ASSERT_TRUE(Put(*session, "x", 1).ok());
  ASSERT_TRUE(Put(*session, "z", 1).ok());
  HandleClaim claim = *session->Claim({.uses = {{"x", true}, {"z", true}}, .keeps = {"x", "y"}, .poisons = true});
  Go(claim.Fail(Refuse(Refusal::kQueueFull, "")));
  EXPECT_EQ(ReasonOf(session->Find("x")), "HANDLE_POISONED") << "who comes next would work on the last state";
  EXPECT_EQ(ReasonOf(session->Find("y")), "HANDLE_POISONED");
  EXPECT_TRUE(session->Find("z").ok());
  EXPECT_EQ(CpuUse(store).tensors, 1);

  session->Poison({.uses = {{"z", true}}, .keeps = {"z", "new"}}, Refuse(Refusal::kRateLimited, ""));
  EXPECT_EQ(ReasonOf(session->Find("z")), "HANDLE_POISONED");
  EXPECT_EQ(ReasonOf(session->Find("new")), "HANDLE_POISONED");
  EXPECT_EQ(CpuUse(store).bytes, 0);
}

TEST_F(SessionStoreTest, WhatIsDeletedWhileARequestHasItDoesNotComeBack) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  for (const bool is_kept : {false, true}) {
    ASSERT_TRUE(Put(*session, "x", 1).ok());
    HandleRequest request = {.uses = {{"x", true}}, .keeps = {}};
    if (is_kept) request.keeps.push_back("x");
    HandleClaim claim = *session->Claim(request);
    const std::string names[] = {"x"};
    EXPECT_EQ(session->Delete(names).size(), is_kept ? 0u : 1u);
    Go(claim.Fail(Refuse(Refusal::kCancelled, "")));
    EXPECT_EQ(ReasonOf(session->Find("x")), "HANDLE_UNKNOWN");
    EXPECT_EQ(CpuUse(store).bytes, 0);
  }
  // An earlier one of the same name does.
  ASSERT_TRUE(Put(*session, "x", 1).ok());
  HandleClaim first = *session->Claim({.uses = {{"x", true}}, .keeps = {"x"}});
  HandleClaim second = *session->Claim({.uses = {{"x", true}}, .keeps = {"y"}});
  Go(second.Fail(Refuse(Refusal::kCancelled, "")));
  Go(first.Fail(Refuse(Refusal::kCancelled, "")));
  EXPECT_TRUE(session->Find("x").ok());
}

TEST_F(SessionStoreTest, WhatIsDonatedIsWritableOnlyWhereNobodyElseReadsIt) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  ASSERT_TRUE(Put(*session, "x", 4).ok());
  absl::StatusOr<ResidentTensor> reader = session->Find("x");
  HandleClaim earlier = *session->Claim({.uses = {{"x"}}});
  HandleClaim donation = *session->Claim({.uses = {{"x", true}}});
  EXPECT_FALSE(earlier.IsWritable(0));
  EXPECT_FALSE(donation.IsWritable(0));
  Go(earlier.Fail(absl::CancelledError("")));
  EXPECT_FALSE(donation.IsWritable(0)) << "a download is still reading";
  reader->buffer = nullptr;
  EXPECT_TRUE(donation.IsWritable(0));
  Go(donation.Fail(absl::CancelledError("")));

  HandleClaim twice = *session->Claim({.uses = {{"x"}, {"x", true}}});
  EXPECT_FALSE(twice.IsWritable(1)) << "the request reads it as well";
  twice.Start();
  // One memory under two handles, as where a result is the argument.
  HandleClaim alias = *session->Claim({.keeps = {"y", "z"}});
  std::vector<HandleClaim::Kept> kept = Computed(*session, 1, 4);
  kept.push_back(kept[0]);
  Waiters waiters;
  ASSERT_TRUE(alias.Fulfil(std::move(kept), &waiters).ok());
  HandleClaim shared = *session->Claim({.uses = {{"y", true}}});
  EXPECT_FALSE(shared.IsWritable(0));
  session->Delete({"z"});
  EXPECT_TRUE(shared.IsWritable(0));
}

TEST_F(SessionStoreTest, DependentsWaitForWhatIsPromised) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  HandleClaim producer = *session->Claim({.keeps = {"x"}});
  EXPECT_EQ(ReasonOf(session->Find("x")), "HANDLE_INCOMPLETE");
  HandleClaim dependent = *session->Claim({.uses = {{"x"}, {"x"}}, .keeps = {"y"}});
  session->Delete({"x"});  // does not overtake the use
  int ready = 0;
  EXPECT_FALSE(dependent.ReadyOrElse([&] { ++ready; }));
  EXPECT_EQ(ready, 0);
  Waiters waiters;
  ASSERT_TRUE(producer.Fulfil(Computed(*session, 1, 4), &waiters).ok());
  EXPECT_EQ(ready, 0);
  Go(waiters);
  EXPECT_EQ(ready, 1);
  EXPECT_TRUE(dependent.CheckReady().ok());
  EXPECT_EQ(static_cast<const float*>(dependent.Read(1)->buffer->address())[3], 2);
  HandleClaim later = *session->Claim({.uses = {{"y"}}});
  ASSERT_TRUE(dependent.Fulfil(Computed(*session, 1, 4), &waiters).ok());
  EXPECT_TRUE(later.ReadyOrElse([&] { ++ready; }));
  EXPECT_EQ(ready, 1) << "only who has to wait is told";
}

// A caller that waits for a long run must not leave something behind each time it gives up.
TEST_F(SessionStoreTest, WhoGivesUpLeavesNothingWhereItWaited) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  HandleClaim producer = *session->Claim({.keeps = {"x", "y"}});
  const auto held = std::make_shared<int>();
  for (int i = 0; i < 3; ++i) {
    HandleClaim dependent = *session->Claim({.uses = {{"x"}, {"y"}, {"x"}}});
    EXPECT_FALSE(dependent.ReadyOrElse([held] { ADD_FAILURE() << "nobody waits"; }));
    EXPECT_EQ(held.use_count(), 2);
    if (i == 0) Go(dependent.Fail(Refuse(Refusal::kDeadlineExceeded, "the deadline passed")));
    if (i == 1) dependent = HandleClaim();
  }
  EXPECT_EQ(held.use_count(), 1);
  HandleClaim stays = *session->Claim({.uses = {{"x"}}});
  int ready = 0;
  EXPECT_FALSE(stays.ReadyOrElse([&] { ++ready; }));
  Waiters waiters;
  ASSERT_TRUE(producer.Fulfil(Computed(*session, 2, 4), &waiters).ok());
  Go(waiters);
  EXPECT_EQ(ready, 1);
}

TEST_F(SessionStoreTest, FailuresPoisonWhatDependsOnThem) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  HandleClaim producer = *session->Claim({.keeps = {"x"}, .poisons = true});
  HandleClaim second = *session->Claim({.uses = {{"x"}}, .keeps = {"y"}, .poisons = true});
  HandleClaim third = *session->Claim({.uses = {{"y"}}, .keeps = {"z"}, .poisons = true});
  absl::Status of_second, of_third;
  EXPECT_FALSE(second.ReadyOrElse([&] {
    of_second = second.CheckReady();
    Go(second.Fail(of_second));
  }));
  EXPECT_FALSE(third.ReadyOrElse([&] {
    of_third = third.CheckReady();
    Go(third.Fail(of_third));
  }));
  Go(producer.Fail(Refuse(Refusal::kMatrixSingular, "matrix 7 is singular")));
  for (const absl::Status& status : {of_second, of_third, session->Find("z").status()}) {
    EXPECT_EQ(ReasonOf(status), "HANDLE_POISONED");
    EXPECT_THAT(std::string(status.message()), HasSubstr("MATRIX_SINGULAR: matrix 7 is singular")) << "the first cause";
  }
  EXPECT_EQ(ReasonOf(session->Claim({.keeps = {"x"}})), "HANDLE_POISONED");
  EXPECT_THAT(session->Delete({"x", "y", "z"}), IsEmpty());
  EXPECT_TRUE(session->Claim({.keeps = {"x"}}).ok());
}

TEST_F(SessionStoreTest, ARequestThatIsRefusedOnArrivalPoisonsToo) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  EXPECT_EQ(ReasonOf(session->Claim({.uses = {{"none"}}, .keeps = {"x"}, .poisons = true})), "HANDLE_UNKNOWN");
  HandleClaim dependent = *session->Claim({.uses = {{"x"}}});
  EXPECT_EQ(ReasonOf(dependent.CheckReady()), "HANDLE_POISONED");
}

TEST_F(SessionStoreTest, AClaimOutlivesItsSession) {
  SessionStore store({});
  const SessionPtr session = Open(store);
  ASSERT_TRUE(Put(*session, "x", 4).ok());
  HandleClaim claim = *session->Claim({.uses = {{"x", true}}, .keeps = {"y"}});
  ASSERT_TRUE(store.Close("a", session->id()).ok());
  EXPECT_EQ(static_cast<const float*>(claim.Read(0)->buffer->address())[0], 1);
  Waiters waiters;
  EXPECT_EQ(ReasonOf(claim.Fulfil(Computed(*session, 1, 4), &waiters)), "SESSION_UNKNOWN");
  EXPECT_EQ(session->counts().handles, 0);
  EXPECT_EQ(CpuUse(store).bytes, 0);
}

TEST_F(SessionStoreTest, ChargesAreSplitAndJoined) {
  const auto ledger = std::make_shared<ResidentLedger>(ResidentLedger::Limits{.tenant_bytes = 100});
  MemoryCharge whole = *ledger->Charge("a", "cpu:0", 60);
  MemoryCharge part = whole.Take(25);
  EXPECT_EQ(whole.bytes(), 35);
  EXPECT_EQ(ledger->TenantBytes("a"), 60);
  part.Add(std::move(whole));
  EXPECT_EQ(part.bytes(), 60);
  EXPECT_EQ(part.Take(1000).bytes(), 60);
  EXPECT_EQ(ledger->TenantBytes("a"), 0);
}

TEST_F(SessionStoreTest, EveryHandleIsCharged) {
  SessionStore store({.memory = {.tenant_bytes = 8 * kHandleBytes}});
  const SessionPtr session = Open(store);
  const auto charged = [&] { return store.stats().devices["cpu:0"].bytes; };
  for (const char* handle : {"a", "b"}) ASSERT_TRUE(Put(*session, handle, 1).ok());
  EXPECT_EQ(charged(), 2 * kHandleBytes) << "small ones take that at least";
  ASSERT_TRUE(Put(*session, "large", 1024).ok());
  EXPECT_EQ(charged(), 6 * kHandleBytes) << "others their bytes";

  // A second handle of the same memory.
  HandleClaim claim = *session->Claim({.uses = {{"a", false}}, .keeps = {"same"}});
  EXPECT_TRUE((*claim.MemoryOf(0))->CheckAnotherName().ok());
  Waiters waiters;
  ASSERT_TRUE(claim.Fulfil({{.type = Floats(1), .memory = *claim.MemoryOf(0)}}, &waiters).ok());
  EXPECT_EQ(charged(), 7 * kHandleBytes);
  claim = *session->Claim({.uses = {{"large", false}}, .keeps = {"large too"}});
  ASSERT_TRUE(claim.Fulfil({{.type = Floats(1024), .memory = *claim.MemoryOf(0)}}, &waiters).ok());
  EXPECT_EQ(charged(), 7 * kHandleBytes) << "its bytes are more than two handles";
  ASSERT_TRUE(Put(*session, "c", 1).ok());
  claim = *session->Claim({.uses = {{"a", false}}, .keeps = {"too many"}});
  EXPECT_EQ(ReasonOf((*claim.MemoryOf(0))->CheckAnotherName()), "LIMIT_EXCEEDED");
  Go(claim.Fail(absl::CancelledError("")));

  EXPECT_THAT(session->Delete({"a", "large"}), IsEmpty());
  EXPECT_EQ(charged(), 7 * kHandleBytes) << "the memory has other names";
  EXPECT_THAT(session->Delete({"same", "large too", "b", "c"}), IsEmpty());
  EXPECT_EQ(charged(), 0);
}

TEST_F(SessionStoreTest, HandlesOfFailuresAreCharged) {
  SessionStore store({.memory = {.tenant_bytes = 2 * kHandleBytes}});
  const SessionPtr session = Open(store);
  const auto charged = [&] { return session->ledger()->TenantBytes("a"); };
  HandleClaim claim = *session->Claim({.keeps = {"x", "y"}, .poisons = true});
  EXPECT_EQ(charged(), 0) << "what is not over yet counts in the bytes of its request";
  Go(claim.Fail(absl::CancelledError("")));
  EXPECT_EQ(charged(), 2 * kHandleBytes);
  session->Poison({.keeps = {"z"}, .poisons = true}, absl::CancelledError(""));
  EXPECT_EQ(charged(), 3 * kHandleBytes) << "nobody can be refused a poisoned handle";
  EXPECT_EQ(LimitOf(absl::StatusOr<int>(Put(*session, "w", 1))), "sessions.tenant_bytes 2048 < 4096");
  session->Delete({"x", "y", "z"});
  EXPECT_EQ(charged(), 0);
}

TEST_F(SessionStoreTest, TellsHowTensorsEnd) {
  SessionStore store({}, clock_.AsFunction());
  const auto ends = [&store](TensorEnd end) { return store.stats().ends[static_cast<size_t>(end)]; };
  const SessionPtr session = Open(store);
  for (const char* handle : {"x", "y", "z", "left"}) ASSERT_TRUE(Put(*session, handle, 4).ok());
  session->Delete({"x", "none"});
  EXPECT_EQ(ends(TensorEnd::kDeleted), 1);

  HandleClaim taken = *session->Claim({.uses = {{"y", true}}});
  taken.Start();
  Waiters waiters;
  ASSERT_TRUE(taken.Fulfil({}, &waiters).ok());
  HandleClaim given_back = *session->Claim({.uses = {{"z", true}}});
  Go(given_back.Fail(absl::CancelledError("")));
  EXPECT_EQ(ends(TensorEnd::kDonated), 1);
  HandleClaim deleted_meanwhile = *session->Claim({.uses = {{"z", true}}});
  session->Delete({"z"});
  Go(deleted_meanwhile.Fail(absl::CancelledError("")));
  EXPECT_EQ(ends(TensorEnd::kDeleted), 2);
  EXPECT_EQ(ends(TensorEnd::kDonated), 1) << "one end each";

  session->StartUpload("u", Floats(4), backend_.get())->Drop();
  EXPECT_EQ(ends(TensorEnd::kUploadFailed), 1);
  HandleClaim never = *session->Claim({.keeps = {"result"}});
  Go(never.Fail(absl::CancelledError("")));
  EXPECT_EQ(ends(TensorEnd::kUploadFailed), 1) << "what was never there does not end";

  HandleClaim held = *session->Claim({.uses = {{"left", true}}});
  ASSERT_TRUE(store.Close("a", session->id()).ok());
  Go(held.Fail(absl::CancelledError("")));
  EXPECT_EQ(ends(TensorEnd::kSessionClosed), 1) << "what a run was given too, once";

  const SessionPtr failing = Open(store);
  ASSERT_TRUE(Put(*failing, "state", 4).ok());
  failing->Poison({.uses = {{"state", true}}, .keeps = {"state"}, .poisons = true}, absl::CancelledError(""));
  EXPECT_EQ(ends(TensorEnd::kPoisoned), 1);
  failing->Poison({.uses = {{"state", true}}, .keeps = {"state"}, .poisons = true}, absl::CancelledError(""));
  EXPECT_EQ(ends(TensorEnd::kPoisoned), 1) << "what is poisoned already is no tensor";

  const SessionPtr forgotten = Open(store);
  ASSERT_TRUE(Put(*forgotten, "x", 4).ok());
  ASSERT_TRUE(Put(*forgotten, "y", 4).ok());
  clock_.Advance(3600, store);
  EXPECT_TRUE(WaitFor([&] { return ends(TensorEnd::kLeaseExpired) == 2; }));
}

TEST_F(SessionStoreTest, TenantsHaveSharesOfTheirQuotas) {
  SessionStore store({.tenant_sessions = 4, .memory = {.tenant_bytes = 4 * kHandleBytes}});
  const SessionPtr session = Open(store);
  const SessionPtr other = Open(store, "b");
  Open(store);
  ASSERT_TRUE(Put(*session, "x", 4).ok());
  using ByTenant = std::map<std::string, double>;
  EXPECT_EQ(*store.TenantSessionShares(), (ByTenant{{"a", 0.5}, {"b", 0.25}}));
  EXPECT_EQ(*store.TenantByteShares(), (ByTenant{{"a", 0.25}}));
  SessionStore unbounded({});
  EXPECT_FALSE(unbounded.TenantSessionShares().has_value());
  EXPECT_FALSE(unbounded.TenantByteShares().has_value());
}

TEST_F(SessionStoreTest, ManyThreadsAtOnce) {
  SessionStore store({.handles = 8, .default_lease = absl::Seconds(5)}, clock_.AsFunction());
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const std::string tenant(1, static_cast<char>('a' + t % 3));
      for (int i = 0; i < 60; ++i) {
        const SessionPtr session = *store.Open(tenant, absl::ZeroDuration());
        for (int k = 0; k < 3; ++k) {
          absl::StatusOr<SessionUse> use = store.Use(tenant, session->id());
          if (!use.ok()) break;
          Put(*session, "x", 16).IgnoreError();
          absl::StatusOr<HandleClaim> claim = session->Claim({.uses = {{"x", k == 2}}, .keeps = {"y"}});
          if (!claim.ok()) continue;
          if (claim->IsWritable(0)) static_cast<char*>(claim->Read(0)->buffer->address())[0] = 1;
          Waiters waiters;
          claim->Fulfil(Computed(*session, 1, 16), &waiters).IgnoreError();
          session->Delete({"y"});
        }
        if (i % 3 == 0) store.Close(tenant, session->id()).IgnoreError();
        if (i % 5 == 0) clock_.Advance(2, store);
        store.Describe();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  clock_.Advance(5, store);
  EXPECT_TRUE(WaitFor([&] { return store.stats().sessions == 0 && CpuUse(store).bytes == 0; }));
  EXPECT_EQ(CpuUse(store).tensors, 0);
}

}  // namespace
}  // namespace tensord::server
