#include "engine/runtime/programs/refused_graphs.h"

#include <algorithm>
#include <utility>

#include "engine/base/refusal.h"

namespace tensord {

bool RefusedGraphs::IsLasting(const absl::Status& status) {
  const bool by_graph =
      status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kUnimplemented;
  return by_graph && DetailOf(status).has_value();
}

void RefusedGraphs::Add(KeyPtr key, const absl::Status& status, std::vector<std::string> names, absl::Time now) {
  if (options_.keep <= absl::ZeroDuration() || !IsLasting(status)) return;
  // One a fingerprint: of two graphs with the same fingerprint, a case never seen, the second is compiled every time.
  if (Find(*key, now) != nullptr || index_.contains(key->fingerprint)) return;
  int64_t bytes = static_cast<int64_t>(sizeof(Entry) + key->bytes.size() + status.message().size());
  for (const std::string& name : names) bytes += static_cast<int64_t>(sizeof(std::string) + name.size());
  if (bytes > options_.max_bytes) return;
  bytes_ += bytes;
  const Fingerprint fingerprint = key->fingerprint;
  entries_.push_back({.key = std::move(key),
                      .refused = {.status = status, .names = std::move(names)},
                      .until = now + options_.keep,
                      .bytes = bytes});
  index_[fingerprint] = std::prev(entries_.end());
  while (entries() > options_.max_entries || bytes_ > options_.max_bytes) DropOldest();
}

void RefusedGraphs::SetKeep(absl::Duration keep, absl::Time now) {
  options_.keep = keep;
  for (Entry& entry : entries_) entry.until = std::min(entry.until, now + keep);
}

const RefusedGraphs::Refused* RefusedGraphs::Find(const ProgramKey& key, absl::Time now) {
  while (!entries_.empty() && entries_.front().until <= now) DropOldest();
  const auto found = index_.find(key.fingerprint);
  if (found == index_.end() || found->second->key->bytes != key.bytes) return nullptr;
  return &found->second->refused;
}

void RefusedGraphs::DropOldest() {
  bytes_ -= entries_.front().bytes;
  index_.erase(entries_.front().key->fingerprint);
  entries_.pop_front();
}

}  // namespace tensord
