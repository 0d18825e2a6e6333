#ifndef TENSORD_SERVER_OBSERVE_METRICS_TENANT_SERIES_H_
#define TENSORD_SERVER_OBSERVE_METRICS_TENANT_SERIES_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>

#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// The use of resources by tenant name: of the first kMaxTenants, and of all others together. Thread-safe. The families
// must outlive it.
class TenantSeries {
 public:
  static constexpr size_t kMaxTenants = 100;
  static constexpr char kOthers[] = "other";

  TenantSeries(prometheus::Family<prometheus::Counter>& requests,
               prometheus::Family<prometheus::Counter>& device_seconds);

  // A request that ended; how long its program ran, zero where none did.
  void Count(absl::string_view tenant, absl::Duration run);
  // Returns the share of each tenant with a name here, zero if it is not among `shares`, and, if there are other
  // tenants, the largest share of those. A new tenant gets a name if there is room.
  std::map<std::string, double> ByName(const std::map<std::string, double>& shares);

 private:
  struct Series {
    prometheus::Counter* requests = nullptr;
    prometheus::Counter* device_seconds = nullptr;
  };
  using Table = absl::flat_hash_map<std::string, Series>;

  // Finds the entry of that name, or of kOthers.
  Table::iterator FindLocked(absl::string_view tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Series Add(absl::string_view tenant);

  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& device_seconds_;
  Mutex mutex_;
  Table tenants_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_TENANT_SERIES_H_
