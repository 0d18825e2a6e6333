#include "engine/runtime/compile/turn_pool.h"

#include <algorithm>
#include <utility>

#include "engine/base/thread_niceness.h"

namespace tensord {
namespace {

// Accounts without work that are kept without looking whether they still owe.
constexpr size_t kIdleAccounts = 64;

thread_local const TurnPool* pool_of_thread = nullptr;

}  // namespace

TurnPool::TurnPool(const Options& options) : options_(options), bounds_(options.bounds) {
  MutexLock lock(&mutex_);
  for (int i = 0; i < options.threads; ++i) StartThreadLocked();
}

TurnPool::~TurnPool() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.SignalAll();
  for (std::thread& thread : threads) thread.join();
}

void TurnPool::StartThreadLocked() {
  ++idle_;  // until it has looked
  threads_.emplace_back([this] {
    if (options_.niceness > 0) LowerThisThread(options_.niceness);
    pool_of_thread = this;
    Loop();
  });
}

void TurnPool::LinkLocked(Accounts::value_type* entry) {
  const Account& account = entry->second;
  if (!account.works.empty() && account.running < options_.threads) waiting_.insert(entry);
}

TurnPool::Place TurnPool::Submit(const std::string& tenant, Work work) {
  MutexLock lock(&mutex_);
  if (stats_.queued >= bounds_.max_queued) return {.answer = Place::Answer::kQueueFull};
  Accounts::value_type* const entry = &*accounts_.try_emplace(tenant).first;
  Account& account = entry->second;
  if (static_cast<int64_t>(account.works.size()) >= bounds_.max_queued_per_tenant) {
    return {.answer = Place::Answer::kTenantFull};
  }
  UnlinkLocked(entry);
  if (account.works.empty()) {
    // It saved nothing up.
    account.used = std::max(account.used, clock_);
    account.turn = ++last_turn_;
  }
  account.works.emplace(++last_id_, Queued{.work = std::move(work), .since = Clock::now()});
  LinkLocked(entry);
  ++stats_.queued;
  const bool is_first = account.running == 0 && account.works.size() == 1;
  const size_t most = static_cast<size_t>(options_.threads + options_.spare_threads);
  if (is_first && static_cast<int>(waiting_.size()) > idle_ && threads_.size() < most && !stopping_) {
    StartThreadLocked();
  } else {
    wake_.Signal();
  }
  return {.id = last_id_};
}

bool TurnPool::Drop(const std::string& tenant, uint64_t id) {
  Work dropped;  // goes without the lock
  MutexLock lock(&mutex_);
  const auto account = accounts_.find(tenant);
  if (account == accounts_.end()) return false;
  const auto work = account->second.works.find(id);
  if (work == account->second.works.end()) return false;
  UnlinkLocked(&*account);
  dropped = std::move(work->second.work);
  account->second.works.erase(work);
  --stats_.queued;
  LinkLocked(&*account);
  ForgetIdleLocked();
  return true;
}

bool TurnPool::IsCaller() const { return pool_of_thread == this; }

void TurnPool::SetBounds(const Bounds& bounds) {
  MutexLock lock(&mutex_);
  bounds_ = bounds;
}

TurnPool::Bounds TurnPool::bounds() const {
  MutexLock lock(&mutex_);
  return bounds_;
}

TurnPool::Stats TurnPool::stats() const {
  MutexLock lock(&mutex_);
  Stats stats = stats_;
  const Clock::time_point now = Clock::now();
  for (const auto& [tenant, account] : accounts_) {
    if (!account.works.empty())
      stats.oldest_wait = std::max(stats.oldest_wait, now - account.works.begin()->second.since);
  }
  return stats;
}

TurnPool::Work TurnPool::TakeLocked(Accounts::value_type* entry) {
  Account& account = entry->second;
  UnlinkLocked(entry);
  Work work = std::move(account.works.begin()->second.work);
  account.works.erase(account.works.begin());
  clock_ = std::max(clock_, account.used);
  ++account.running;
  account.turn = ++last_turn_;
  LinkLocked(entry);
  --stats_.queued;
  ++stats_.running;
  return work;
}

void TurnPool::EndLocked(Accounts::value_type* entry, Clock::duration used) {
  UnlinkLocked(entry);
  entry->second.used += used;
  --entry->second.running;
  LinkLocked(entry);
  --stats_.running;
  ++stats_.done;
  stats_.busy += used;
  ForgetIdleLocked();
}

// A tenant with nothing here and no debt begins anew the next time. When all is quiet, debts are forgiven.
void TurnPool::ForgetIdleLocked() {
  if (stats_.queued == 0 && stats_.running == 0) {
    accounts_.clear();
    clock_ = Clock::duration{0};
    return;
  }
  if (accounts_.size() < 2 * waiting_.size() + kIdleAccounts) return;
  absl::erase_if(accounts_, [this](const Accounts::value_type& entry) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const Account& account = entry.second;
    return account.works.empty() && account.running == 0 && account.used <= clock_;
  });
}

void TurnPool::Loop() {
  mutex_.Lock();
  --idle_;
  while (true) {
    if (waiting_.empty()) {
      if (stopping_ && stats_.queued == 0) break;
      ++idle_;
      wake_.Wait(&mutex_);
      --idle_;
      continue;
    }
    Accounts::value_type* const entry = *waiting_.begin();
    Work work = TakeLocked(entry);
    mutex_.Unlock();
    const Clock::time_point start = Clock::now();
    work();
    work = nullptr;  // what it holds goes before it is said to be over
    const Clock::duration used = Clock::now() - start;
    GiveWay();
    mutex_.Lock();
    EndLocked(entry, used);
  }
  mutex_.Unlock();
  wake_.SignalAll();  // others may wait for what this one did last
}

}  // namespace tensord
