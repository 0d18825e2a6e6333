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

// What tenants use, counted by name: of the first kMaxTenants, and of all others together. Thread-safe. The families
// must outlive it.
class TenantSeries {
 public:
  static constexpr size_t kMaxTenants = 100;
  static constexpr char kOthers[] = "other";

  TenantSeries(prometheus::Family<prometheus::Counter>& requests,
               prometheus::Family<prometheus::Counter>& device_seconds);

  // A request that ended; how long its program ran, zero where none did.
  void Count(absl::string_view tenant, absl::Duration run);
  // What each tenant that has a name here has, zero where it is not among `shares`; of all others, where there are
  // some, the most that one has. A tenant that is new gets a name if there is room.
  std::map<std::string, double> ByName(const std::map<std::string, double>& shares);

 private:
  struct Series {
    prometheus::Counter* requests = nullptr;
    prometheus::Counter* device_seconds = nullptr;
  };
  using Table = absl::flat_hash_map<std::string, Series>;

  // Of that name, or kOthers.
  Table::iterator FindLocked(absl::string_view tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Series Add(absl::string_view tenant);

  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& device_seconds_;
  Mutex mutex_;
  Table tenants_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_TENANT_SERIES_H_
