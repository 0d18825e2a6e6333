#include "engine/runtime/devices/fair_class.h"

#include <algorithm>

namespace tensord {
namespace {

// Accounts without runs that are kept without looking whether they still owe.
constexpr size_t kIdleAccounts = 64;

}  // namespace

void FairClass::Await(Account* account) {
  account->turn = ++turns_;
  waiting_.insert(account);
}

void FairClass::Push(const QueuedRun* run) {
  Account& account = accounts_[run->request.tenant];
  if (account.runs.empty()) {
    account.used = std::max(account.used, clock_);
    Await(&account);
  }
  account.runs.insert(run);
  account.times.insert(run->expected);
  account.rises.insert(run->rises_at);
  account.work += run->expected;
  work_ += run->expected;
  ++size_;
}

void FairClass::MoveRise(const QueuedRun* run, absl::Time to) {
  Account& account = accounts_[run->request.tenant];
  account.rises.erase(account.rises.find(run->rises_at));
  account.rises.insert(to);
}

void FairClass::Unlink(Account* account, const QueuedRun* run) {
  account->runs.erase(run);
  account->times.erase(account->times.find(run->expected));
  account->rises.erase(account->rises.find(run->rises_at));
  account->work -= run->expected;
  work_ -= run->expected;
  --size_;
}

void FairClass::Remove(const QueuedRun* run) {
  Account& account = accounts_[run->request.tenant];
  Unlink(&account, run);
  if (!account.runs.empty()) return;
  waiting_.erase(&account);
  ForgetIdle();
}

const QueuedRun* FairClass::Next() const { return waiting_.empty() ? nullptr : *(*waiting_.begin())->runs.begin(); }

void FairClass::Start(const QueuedRun* run) {
  Account& account = accounts_[run->request.tenant];
  waiting_.erase(&account);
  clock_ = std::max(clock_, account.used);
  Unlink(&account, run);
  account.used += run->charged;
  if (!run->is_known()) account.guessed += run->charged;
  ++account.running;
  ++running_;
  if (!account.runs.empty()) Await(&account);
  ForgetIdle();
}

void FairClass::End(const QueuedRun& run, absl::Duration used) {
  Account& account = accounts_[run.request.tenant];
  const bool waits = !account.runs.empty();
  if (waits) waiting_.erase(&account);
  account.used += used - run.charged;
  if (!run.is_known()) account.guessed -= run.charged;
  --account.running;
  --running_;
  if (waits) waiting_.insert(&account);
  ForgetIdle();
}

void FairClass::Charge(const QueuedRun& run, absl::Duration used) {
  const auto found = accounts_.find(run.request.tenant);
  if (found == accounts_.end()) return;  // all was quiet
  Account& account = found->second;
  const bool waits = waiting_.erase(&account) > 0;
  account.used += used;
  if (waits) waiting_.insert(&account);
}

// A tenant with nothing here and no debt begins anew the next time. When all is quiet, debts are forgiven.
void FairClass::ForgetIdle() {
  if (size_ == 0 && running_ == 0) {
    accounts_.clear();
    clock_ = absl::ZeroDuration();
    return;
  }
  if (accounts_.size() < 2 * waiting_.size() + kIdleAccounts) return;
  absl::erase_if(accounts_, [this](const auto& entry) {
    const Account& account = entry.second;
    return account.runs.empty() && account.running == 0 && account.used <= clock_;
  });
}

void FairClass::Account::AddPieces(WorkAhead* ahead) const {
  for (const absl::Duration time : times) {
    if (!ahead->AddPiece(time)) break;
  }
}

absl::Duration FairClass::OwnWork(const Account& account, absl::Time due) {
  if (account.runs.empty() || (*account.runs.rbegin())->due <= due) return account.work;
  absl::Duration own;
  for (const QueuedRun* run : account.runs) {
    if (run->due > due) break;
    own += run->expected;
  }
  return own;
}

void FairClass::AddAll(WorkAhead* ahead) const {
  ahead->AddWork(work_);
  for (const Account* account : waiting_) account->AddPieces(ahead);
}

void FairClass::AddOwn(const std::string& tenant, absl::Time due, WorkAhead* ahead) const {
  const auto found = accounts_.find(tenant);
  if (found == accounts_.end()) return;
  ahead->AddWork(OwnWork(found->second, due));
  found->second.AddPieces(ahead);
}

absl::Time FairClass::AddShares(const std::string& tenant, absl::Time due, WorkAhead* ahead) const {
  const auto found = accounts_.find(tenant);
  if (found == accounts_.end() || found->second.runs.empty()) return absl::InfiniteFuture();
  const Account& account = found->second;
  // The least that the tenant will have used when that run's turn comes.
  const absl::Duration used = account.used - account.guessed + OwnWork(account, due);
  for (const Account* other : waiting_) {
    // A run that goes on for longer than guessed is not in its tenant's use.
    if (other == &account || other->guessed > absl::ZeroDuration() || other->used >= used) continue;
    const absl::Duration share = std::min(other->work, used - other->used);
    ahead->AddWork(share);
    // The tenant is charged when a run starts: a single one, which may not even wait yet, can be all of its share.
    ahead->AddPiece(share);
  }
  return *account.rises.begin();
}

}  // namespace tensord
