#ifndef TENSORD_SERVER_OBSERVE_METRICS_COLLECTED_METRICS_H_
#define TENSORD_SERVER_OBSERVE_METRICS_COLLECTED_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "engine/exec/binding/binding_stats.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "engine/runtime/compile/compile_pool.h"
#include "engine/runtime/compile/turn_pool.h"
#include "engine/runtime/devices/executor_pool.h"
#include "engine/runtime/programs/program_cache.h"
#include "engine/runtime/programs/program_store.h"
#include "engine/runtime/programs/quarantine.h"
#include "server/connections/connection_bounds.h"
#include "server/connections/connection_places.h"
#include "server/observe/logs/log.h"
#include "server/observe/metrics/metric_sample.h"

namespace tensord::server {

// Metrics counted elsewhere, read when Prometheus asks. Thread-safe. Its sources must outlive it.
class CollectedMetrics : public prometheus::Collectable {
 public:
  struct Admission {
    bool ready = false;
    bool draining = false;
    int64_t in_flight_bytes = 0;
  };
  // Tables that kernels of a family share.
  struct Tables {
    int64_t bytes = 0;
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t evictions = 0;
  };
  // The CUDA devices, and the machine code of kernels, which they share.
  struct Cuda {
    using Counts = std::vector<std::pair<const char*, int64_t>>;  // by the value of a label
    struct Device {
      Counts copied;    // bytes, by direction
      Counts direct;    // likewise: those of them that pinned memory of payloads was spared a copy for
      Counts contexts;  // by event
      Counts graphs;    // likewise
      int64_t kept_graphs = 0;
    };
    std::map<std::string, Device> devices;
    Counts pinnings;  // by result
    int64_t pinned_bytes = 0;
    Counts kernels;        // by result
    Counts kernel_errors;  // by reason
    Counts kernel_bytes;   // by tier
    absl::Duration compiling;
  };
  // The tensors that clients keep on the server.
  struct Resident {
    struct Device {
      int64_t tensors = 0;
      int64_t bytes = 0;
    };
    int64_t sessions = 0;
    int64_t expired = 0;
    std::map<std::string, Device> devices;
    std::map<std::string, int64_t> evictions;  // by reason
  };
  // Memory that is shared with clients.
  struct Shared {
    int64_t regions = 0;
    int64_t bytes = 0;
    int64_t out_of_memory = 0;
    std::map<std::string, int64_t> refusals;  // by reason
  };
  // The used shares of tenants' quotas: by resource and tenant.
  using Quotas = std::map<std::string, std::map<std::string, double>>;
  struct Connections {
    ConnectionPlaces::Stats places;
    ConnectionBounds::Ended ended;
  };
  struct Sources {
    std::string version;
    std::string git;  // revision of the sources
    const ExecutorPool* executors;
    const ProgramCache* cache;
    const CompilePool* compile_pool;
    const TurnPool* turns;
    const TurnPool* readers;
    const BindingStats* bindings;
    const ProgramStore* store;     // may be null
    const Quarantine* quarantine;  // likewise
    const HostBufferPool* payloads;
    const Log* log;
    std::function<Admission()> admission;
    std::function<std::map<std::string, Connections>()> connections;  // by listener
    std::function<Tables()> fft_tables;
    std::function<Cuda()> cuda;
    std::function<Resident()> resident;
    std::function<Shared()> shared;
    std::function<Quotas()> quotas;
    std::function<std::vector<std::pair<std::string, int64_t>>()> limits;  // by name, those in force now
  };

  explicit CollectedMetrics(Sources sources);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::vector<MetricSample> LimitsNow() const;

  const Sources sources_;
  const absl::Time start_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_COLLECTED_METRICS_H_
