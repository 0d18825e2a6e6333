#include "engine/runtime/fair_class.h"

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
  account.work += run->expected;
  work_ += run->expected;
  ++size_;
}

void FairClass::Unlink(Account* account, const QueuedRun* run) {
  account->runs.erase(run);
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

void FairClass::Start(const QueuedRun* run, absl::Duration charge) {
  Account& account = accounts_[run->request.tenant];
  waiting_.erase(&account);
  clock_ = std::max(clock_, account.used);
  Unlink(&account, run);
  account.used += charge;
  ++account.running;
  ++running_;
  if (!account.runs.empty()) Await(&account);
  ForgetIdle();
}

void FairClass::End(const std::string& tenant, absl::Duration charged, absl::Duration used) {
  Account& account = accounts_[tenant];
  const bool waits = !account.runs.empty();
  if (waits) waiting_.erase(&account);
  account.used += used - charged;
  --account.running;
  --running_;
  if (waits) waiting_.insert(&account);
  ForgetIdle();
}

// Who has nothing here and owes nothing begins anew the next time. When all is quiet debts are forgiven.
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

absl::Duration FairClass::WorkBefore(const std::string& tenant, absl::Time due) const {
  const auto found = accounts_.find(tenant);
  if (found == accounts_.end() || found->second.runs.empty()) return absl::ZeroDuration();
  const Account& account = found->second;
  absl::Duration own;
  if ((*account.runs.rbegin())->due <= due) {
    own = account.work;
  } else {
    for (const QueuedRun* run : account.runs) {
      if (run->due > due) break;
      own += run->expected;
    }
  }
  absl::Duration before = own;
  for (const Account* other : waiting_) {
    if (other != &account) before += std::min(other->work, own);
  }
  return before;
}

}  // namespace tensord
