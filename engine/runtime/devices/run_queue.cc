#include "engine/runtime/devices/run_queue.h"

#include <algorithm>
#include <utility>

namespace tensord {
namespace {

// A run counts as due after this time at the latest; else a tenant's patient runs would wait as long as hasty ones keep
// coming.
constexpr absl::Duration kMostPatience = absl::Minutes(1);

absl::Time DueOf(absl::Time deadline, absl::Time since) { return std::min(deadline, since + kMostPatience); }

}  // namespace

void RunQueue::SetAgeing(absl::Duration ageing, absl::Time now) {
  options_.ageing = ageing;
  std::set<At> rising;
  for (const auto& [rises_at, id] : rising_) {
    QueuedRun& run = runs_.at(id);
    SetRise(&run, std::min(rises_at, now + ageing));
    rising.emplace(run.rises_at, id);
  }
  rising_ = std::move(rising);
}

void RunQueue::Push(uint64_t id, QueuedRun run) {
  run.id = id;
  run.level = PriorityClassOf(run.request.priority);
  run.due = DueOf(run.request.deadline, run.since);
  run.rises_at = run.since + options_.ageing;
  Insert(std::move(run));
}

void RunQueue::Insert(QueuedRun run) {
  const uint64_t id = run.id;
  const QueuedRun& kept = runs_.emplace(id, std::move(run)).first->second;
  ClassOf(kept).Push(&kept);
  if (kept.request.deadline != absl::InfiniteFuture()) deadlines_.emplace(kept.request.deadline, id);
  if (kept.level + 1 < kNumPriorityClasses) rising_.emplace(kept.rises_at, id);
  ++of_tenant_[kept.request.tenant];
  argument_bytes_ += kept.argument_bytes();
}

QueuedRun RunQueue::Extract(Runs::iterator it) {
  QueuedRun run = std::move(it->second);
  runs_.erase(it);
  deadlines_.erase({run.request.deadline, run.id});
  rising_.erase({run.rises_at, run.id});
  argument_bytes_ -= run.argument_bytes();
  const auto count = of_tenant_.find(run.request.tenant);
  if (--count->second == 0) {
    of_tenant_.erase(count);
    starts_.erase(run.request.tenant);
  }
  return run;
}

void RunQueue::SetRise(QueuedRun* run, absl::Time at) {
  ClassOf(*run).MoveRise(run, at);
  run->rises_at = at;
}

void RunQueue::Age(absl::Time now) {
  while (!rising_.empty() && rising_.begin()->first <= now) {
    const uint64_t id = rising_.begin()->second;
    rising_.erase(rising_.begin());
    QueuedRun& run = runs_.at(id);
    if (const absl::Time rises_at = LastStart(run) + options_.ageing; rises_at > now) {
      SetRise(&run, rises_at);
      rising_.emplace(rises_at, id);
      continue;
    }
    ClassOf(run).Remove(&run);
    ++run.level;
    run.rises_at += options_.ageing;
    ClassOf(run).Push(&run);
    if (run.level + 1 < kNumPriorityClasses) rising_.emplace(run.rises_at, id);
  }
}

absl::Time RunQueue::LastStart(const QueuedRun& run) const {
  const auto starts = starts_.find(run.request.tenant);
  return starts == starts_.end() ? absl::InfinitePast() : starts->second[static_cast<size_t>(run.level)];
}

const QueuedRun* RunQueue::Next(absl::Time now) {
  now_ = now;
  Age(now);
  for (auto it = classes_.rbegin(); it != classes_.rend(); ++it) {
    if (const QueuedRun* next = it->Next()) return next;
  }
  return nullptr;
}

QueuedRun RunQueue::Take(const QueuedRun* next, absl::Duration usual) {
  const auto it = runs_.find(next->id);
  QueuedRun& run = it->second;
  run.charged = run.is_known() ? run.expected : usual;
  ClassOf(run).Start(&run);
  const auto [starts, is_new] = starts_.try_emplace(run.request.tenant);
  if (is_new) starts->second.fill(absl::InfinitePast());
  starts->second[static_cast<size_t>(run.level)] = now_;
  return Extract(it);
}

void RunQueue::End(const QueuedRun& run, absl::Duration used) { ClassOf(run).End(run, used); }

void RunQueue::PutBack(QueuedRun run) {
  const uint64_t id = run.id;
  if (const auto starts = starts_.find(run.request.tenant); starts != starts_.end()) {
    starts->second[static_cast<size_t>(run.level)] = absl::InfinitePast();
  }
  Insert(std::move(run));  // before End, lest the tenant's account be forgotten
  End(runs_.at(id), absl::ZeroDuration());
}

std::optional<QueuedRun> RunQueue::Remove(uint64_t id) {
  const auto it = runs_.find(id);
  if (it == runs_.end()) return std::nullopt;
  ClassOf(it->second).Remove(&it->second);
  return Extract(it);
}

std::vector<QueuedRun> RunQueue::TakeExpired(absl::Time now) {
  std::vector<QueuedRun> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    expired.push_back(*Remove(deadlines_.begin()->second));
  }
  return expired;
}

std::vector<QueuedRun> RunQueue::TakeAll() {
  std::vector<QueuedRun> all;
  while (!runs_.empty()) all.push_back(*Remove(runs_.begin()->first));
  return all;
}

int64_t RunQueue::size_of(const std::string& tenant) const {
  const auto count = of_tenant_.find(tenant);
  return count == of_tenant_.end() ? 0 : count->second;
}

absl::Time RunQueue::first_deadline() const {
  return deadlines_.empty() ? absl::InfiniteFuture() : deadlines_.begin()->first;
}

absl::Time RunQueue::oldest_since() const {
  return runs_.empty() ? absl::InfiniteFuture() : runs_.begin()->second.since;
}

absl::Duration RunQueue::work() const {
  absl::Duration work;
  for (const FairClass& of_class : classes_) work += of_class.work();
  return work;
}

absl::Duration RunQueue::LeastWait(const Claim& claim, absl::Time now, std::vector<absl::Duration> rests) const {
  std::sort(rests.begin(), rests.end());
  const int level = PriorityClassOf(claim.priority);
  const absl::Time due = DueOf(claim.deadline, now);
  // Returns the work that starts before it if it starts in that class. Waiting runs rise no later than it.
  const auto ahead_in = [&](int reached) {
    WorkAhead ahead(rests.size());
    for (int in = level; in < kNumPriorityClasses; ++in) {
      const FairClass& of_class = classes_[static_cast<size_t>(in)];
      in > reached ? of_class.AddAll(&ahead) : of_class.AddOwn(claim.tenant, due, &ahead);
    }
    return ahead;
  };
  const WorkAhead at_once = ahead_in(level);
  WorkAhead shared = at_once;
  const absl::Time rises = classes_[static_cast<size_t>(level)].AddShares(claim.tenant, due, &shared);
  if (shared.IsNone()) return absl::ZeroDuration();
  absl::Duration least = shared.LeastWait(rests);
  if (level + 1 == kNumPriorityClasses) return least;
  // The tenant's own rising runs are charged there, which makes the others' share here the smaller.
  least = std::min(least, std::max(rises - now, at_once.LeastWait(rests)));
  for (int reached = level + 1; reached < kNumPriorityClasses; ++reached) {
    const absl::Duration risen = options_.ageing * (reached - level);
    least = std::min(least, std::max(risen, ahead_in(reached).LeastWait(rests)));
  }
  return least;
}

}  // namespace tensord
