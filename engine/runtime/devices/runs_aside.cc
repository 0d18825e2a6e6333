#include "engine/runtime/devices/runs_aside.h"

namespace tensord {

void RunsAside::Insert(QueuedRun run, Runs* runs) {
  const uint64_t id = run.id;
  if (run.request.deadline != absl::InfiniteFuture()) deadlines_.emplace(run.request.deadline, id);
  if (run.wanted > 0) ++num_growing_;
  runs->emplace(id, std::move(run));
}

QueuedRun RunsAside::Extract(uint64_t id, Runs* runs) {
  QueuedRun run = std::move(runs->extract(id).mapped());
  deadlines_.erase({run.request.deadline, id});
  if (run.wanted > 0) --num_growing_;
  return run;
}

void RunsAside::AwaitStage(QueuedRun run) { Insert(std::move(run), &awaiting_); }

void RunsAside::AwaitTurn(QueuedRun run) { Insert(std::move(run), &waiting_); }

QueuedRun* RunsAside::FindAwaiting(uint64_t id) {
  const auto found = awaiting_.find(id);
  return found == awaiting_.end() ? nullptr : &found->second;
}

QueuedRun* RunsAside::EndAwaiting(uint64_t id) {
  const auto found = awaiting_.find(id);
  if (found == awaiting_.end()) return nullptr;
  return &waiting_.insert(awaiting_.extract(found)).position->second;
}

QueuedRun RunsAside::Take(uint64_t id) { return Extract(id, &waiting_); }

std::optional<QueuedRun> RunsAside::Remove(uint64_t id) {
  for (Runs* const runs : {&awaiting_, &waiting_}) {
    if (runs->contains(id)) return Extract(id, runs);
  }
  return std::nullopt;
}

std::vector<QueuedRun> RunsAside::TakeExpired(absl::Time now) {
  std::vector<QueuedRun> expired;
  while (first_deadline() <= now) expired.push_back(*Remove(deadlines_.begin()->second));
  return expired;
}

std::vector<QueuedRun> RunsAside::TakeAll() {
  std::vector<QueuedRun> all;
  for (Runs* const runs : {&awaiting_, &waiting_}) {
    while (!runs->empty()) all.push_back(Extract(runs->begin()->first, runs));
  }
  return all;
}

}  // namespace tensord
