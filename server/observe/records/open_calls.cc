#include "server/observe/records/open_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"

namespace tensord::server {

std::vector<OpenCalls::Description> OpenCalls::List() const {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Description> calls;
  for (const Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    for (const OpenCall* call = shard.first; call != nullptr; call = call->next_) calls.push_back(call->Describe(now));
  }
  std::sort(calls.begin(), calls.end(), [](const Description& a, const Description& b) { return a.id < b.id; });
  return calls;
}

absl::Status OpenCalls::Cancel(uint64_t id) {
  Shard& shard = ShardOf(id);
  OpenCall* call = nullptr;
  {
    MutexLock lock(&shard.mutex);
    for (call = shard.first; call != nullptr && call->id_ != id; call = call->next_) {
    }
    if (call == nullptr) {
      return Refuse(Refusal::kCallUnknown, absl::StrCat("no call in progress has the id ", id, "; it may have ended"));
    }
    ++call->being_cancelled_;
  }
  // Under no lock: gRPC may run other calls' callbacks on this thread.
  call->facts_.cancel();
  MutexLock lock(&shard.mutex);
  --call->being_cancelled_;
  shard.cancelled.SignalAll();
  return absl::OkStatus();
}

void OpenCall::Enter(OpenCalls* calls, Facts facts) {
  calls_ = calls;
  facts_ = std::move(facts);
  start_ = std::chrono::steady_clock::now();
  id_ = 1 + calls->last_id_.fetch_add(1, std::memory_order_relaxed);
  OpenCalls::Shard& shard = calls->ShardOf(id_);
  MutexLock lock(&shard.mutex);
  next_ = shard.first;
  link_ = &shard.first;
  if (next_ != nullptr) next_->link_ = &next_;
  shard.first = this;
}

void OpenCall::Leave() {
  if (calls_ == nullptr) return;
  OpenCalls::Shard& shard = std::exchange(calls_, nullptr)->ShardOf(id_);
  MutexLock lock(&shard.mutex);
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  while (being_cancelled_ > 0) shard.cancelled.Wait(&shard.mutex);
}

void OpenCall::Uses(const Fingerprint& fingerprint, absl::string_view device) {
  MutexLock lock(&mutex_);
  has_program_ = true;
  fingerprint_ = fingerprint;
  device_.assign(device.data(), device.size());
}

void OpenCall::Queues(std::shared_ptr<const RunStart> run) {
  At(Stage::kQueue);
  MutexLock lock(&mutex_);
  run_ = std::move(run);
}

OpenCalls::Description OpenCall::Describe(std::chrono::steady_clock::time_point now) const {
  OpenCalls::Description call = {.id = id_,
                                 .method = facts_.method,
                                 .is_streamed = facts_.is_streamed,
                                 .tenant = std::string(facts_.tenant),
                                 .request_id = std::string(facts_.request_id),
                                 .peer = facts_.peer(),
                                 .age = now - start_,
                                 .stage = stage_.load(std::memory_order_relaxed),
                                 .fingerprint = "",
                                 .device = ""};
  MutexLock lock(&mutex_);
  if (has_program_) {
    call.fingerprint = fingerprint_.ToHex();
    call.device = device_;
  }
  if (call.stage == Stage::kQueue && run_ != nullptr && run_->has_begun()) call.stage = Stage::kCompute;
  return call;
}

}  // namespace tensord::server
