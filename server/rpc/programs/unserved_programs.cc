#include "server/rpc/programs/unserved_programs.h"

namespace tensord::server {

void UnservedPrograms::Add(const Fingerprint& fingerprint, Time now, absl::Duration keep) {
  MutexLock lock(&mutex_);
  if (until_.size() >= kMost) absl::erase_if(until_, [now](const auto& entry) { return entry.second <= now; });
  if (until_.size() < kMost) until_[fingerprint] = now + absl::ToChronoNanoseconds(keep);
}

bool UnservedPrograms::Has(const Fingerprint& fingerprint, Time now) {
  MutexLock lock(&mutex_);
  const auto found = until_.find(fingerprint);
  if (found == until_.end()) return false;
  if (now < found->second) return true;
  until_.erase(found);
  return false;
}

}  // namespace tensord::server
