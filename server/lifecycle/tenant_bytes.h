#ifndef TENSORD_SERVER_LIFECYCLE_TENANT_BYTES_H_
#define TENSORD_SERVER_LIFECYCLE_TENANT_BYTES_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "engine/base/mutex.h"
#include "engine/base/shares.h"

namespace tensord::server {

// Bytes of one kind that the server holds for its tenants, within a bound of all and a bound of each. A tenant that
// holds none yet may have any number. Thread-safe.
class TenantBytes {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  // The names of the bounding settings, as refusals tell them, and of the counted thing.
  struct Names {
    const char* limit = "";
    const char* tenant_limit = "";
    const char* bytes = "";
    const char* tenant_bytes = "";
  };

  TenantBytes(const Names& names, int64_t most, int64_t most_of_tenant)
      : names_(names), most_(most), most_of_tenant_(most_of_tenant) {}

  // Sets the bounds of bytes added from now on.
  void SetMost(int64_t most, int64_t most_of_tenant);
  int64_t most() const;
  int64_t most_of_tenant() const;

  // Adds bytes. LIMIT_EXCEEDED if all tenants together, or this one, would have too many. `own` of the held bytes
  // belong to the same call, and do not keep it from having more.
  absl::Status Add(int64_t bytes, const std::string& tenant, int64_t own = 0);
  // Counts bytes in that are there, whatever the bounds are.
  void Overdraw(int64_t bytes, const std::string& tenant);
  void Remove(int64_t bytes, const std::string& tenant);
  // Returns the status that Add would return now.
  absl::Status Check(int64_t bytes, const std::string& tenant) const;

  int64_t held() const;
  Shares TenantShares() const;

 private:
  absl::Status CheckLocked(int64_t bytes, const std::string& tenant, int64_t own) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AddLocked(int64_t bytes, const std::string& tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Names names_;
  mutable Mutex mutex_;
  int64_t most_ ABSL_GUARDED_BY(mutex_);
  int64_t most_of_tenant_ ABSL_GUARDED_BY(mutex_);
  int64_t held_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, int64_t> of_tenant_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_TENANT_BYTES_H_
