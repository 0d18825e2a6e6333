#include "server/observe/metrics/collected_metrics.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/observe/logs/library_logs.h"
#include "server/observe/metrics/metric_sample.h"
#include "server/observe/metrics/metrics.h"
#include "server/observe/records/begun_calls.h"

namespace tensord::server {
namespace {

using Sample = MetricSample;

#if defined(__clang__)
constexpr char kCompiler[] = "clang " __clang_version__;
#else
constexpr char kCompiler[] = "gcc " __VERSION__;
#endif

Sample Result(const char* name, int64_t count) { return {{{"result", name}}, static_cast<double>(count)}; }

std::vector<Sample> Tiers(int64_t memory, int64_t disk) {
  return {{{{"tier", "memory"}}, static_cast<double>(memory)}, {{{"tier", "disk"}}, static_cast<double>(disk)}};
}

std::vector<Sample> Evictions(const ProgramCache::Stats& memory, const ProgramStore::Stats& disk) {
  const auto sample = [](const char* tier, const char* reason, int64_t count) {
    return Sample{{{"tier", tier}, {"reason", reason}}, static_cast<double>(count)};
  };
  return {sample("memory", "room", memory.evictions), sample("memory", "admin", memory.removed),
          sample("disk", "room", disk.evictions), sample("disk", "admin", disk.removed)};
}

std::vector<Sample> LoadErrors(const ProgramStore::Stats& stats) {
  std::vector<Sample> samples;
  for (size_t i = 1; i < kNumEntryDamages; ++i) {
    const std::string reason(Name(static_cast<EntryDamage>(i)));
    samples.push_back({{{"reason", reason}}, static_cast<double>(stats.load_errors[i])});
  }
  return samples;
}

}  // namespace

CollectedMetrics::CollectedMetrics(Sources sources) : sources_(std::move(sources)), start_(absl::Now()) {}

std::vector<MetricSample> CollectedMetrics::LimitsNow() const {
  std::vector<Sample> samples;
  for (const auto& [name, value] : sources_.limits())
    samples.push_back({{{"limit", name}}, static_cast<double>(value)});
  return samples;
}

namespace {

using Families = std::vector<prometheus::MetricFamily>;

// The threads that ask have stacks of 100 KiB, and a family takes some: each of the parts below has a frame of its own.
[[gnu::noinline]] void AddFamily(Metric metric, std::vector<Sample> samples, Families* families) {
  families->push_back(FamilyOf(metric, std::move(samples)));
}
[[gnu::noinline]] void AddNumber(Metric metric, double value, Families* families) {
  families->push_back(FamilyOf(metric, value));
}
void AddNumber(Metric metric, int64_t value, Families* families) {
  AddNumber(metric, static_cast<double>(value), families);
}

[[gnu::noinline]] void AddCompilations(const ProgramCache::Stats& cache, const CompilePool::Stats& compiler,
                                       Families* families) {
  AddNumber(Metric::compile_in_flight, compiler.running, families);
  AddNumber(Metric::compile_queue_depth, compiler.queued, families);
  AddNumber(Metric::compile_queue_oldest_age, std::chrono::duration<double>(compiler.oldest_wait).count(), families);
  std::vector<Sample> requests;
  requests.push_back(Result("hit_memory", cache.hits));
  requests.push_back(Result("hit_disk", cache.restored));
  requests.push_back(Result("joined", cache.joined));
  requests.push_back(Result("miss", cache.compiled));
  requests.push_back(Result("failed", cache.failed));
  requests.push_back(Result("negative", cache.negative));
  requests.push_back(Result("abandoned", cache.abandoned));
  AddFamily(Metric::compile_requests, std::move(requests), families);
}

[[gnu::noinline]] void AddTurns(const TurnPool::Stats& turns, Families* families) {
  AddNumber(Metric::turns_busy, std::chrono::duration<double>(turns.busy).count(), families);
  AddNumber(Metric::turns_waiting, turns.queued, families);
}

[[gnu::noinline]] void AddPrograms(const ProgramCache::Stats& cache, const ProgramStore::Stats& disk,
                                   Families* families) {
  AddFamily(Metric::program_cache_bytes, Tiers(cache.bytes, disk.bytes), families);
  AddFamily(Metric::program_cache_entries, Tiers(cache.entries, disk.entries), families);
  AddFamily(Metric::program_cache_evictions, Evictions(cache, disk), families);
  AddFamily(Metric::program_cache_load_errors, LoadErrors(disk), families);
  std::vector<Sample> writes;
  writes.push_back(Result("written", disk.written));
  writes.push_back(Result("error", disk.write_errors));
  writes.push_back(Result("left_out", disk.left_out));
  AddFamily(Metric::program_cache_writes, std::move(writes), families);
}

[[gnu::noinline]] void AddQuarantine(const Quarantine::Counts& counts, Families* families) {
  AddFamily(Metric::quarantined_programs,
            {{{{"culprit", "known"}}, static_cast<double>(counts.known)},
             {{{"culprit", "suspected"}}, static_cast<double>(counts.suspected)}},
            families);
}

[[gnu::noinline]] void AddBindings(const BindingStats& bindings, Families* families) {
  constexpr const char* kResults[] = {"found", "made", "joined", "refused"};
  std::vector<Sample> lookups, evictions, entries;
  for (size_t k = 0; k < kNumSizedKinds; ++k) {
    const BindingStats::Counts counts = bindings.counts(static_cast<SizedKind>(k));
    const std::string kind(kSizedKindNames[k]);
    for (size_t i = 0; i < std::size(kResults); ++i) {
      lookups.push_back({{{"kind", kind}, {"result", kResults[i]}}, static_cast<double>(counts.events[i])});
    }
    evictions.push_back({{{"kind", kind}}, static_cast<double>(counts.events[BindingStats::kEvicted])});
    entries.push_back({{{"kind", kind}}, static_cast<double>(counts.entries)});
  }
  AddNumber(Metric::binding_bytes, bindings.kept_bytes(), families);
  AddFamily(Metric::binding_entries, std::move(entries), families);
  AddFamily(Metric::binding_evictions, std::move(evictions), families);
  AddFamily(Metric::binding_lookups, std::move(lookups), families);
}

// Samples by device: of its executor, its memory and the tensors that clients keep there.
class DeviceSamples {
 public:
  void Add(const DeviceExecutor& executor, const CollectedMetrics::Resident::Device& kept) {
    device_ = executor.device();
    AddExecutor(executor.stats());
    AddMemory(executor.backend()->Memory());
    Put(static_cast<double>(executor.backend()->Describe().memory_bytes), &samples_[Metric::device_memory_bytes]);
    Put(static_cast<double>(kept.tensors), &samples_[Metric::resident_tensors]);
    Put(static_cast<double>(kept.bytes), &samples_[Metric::resident_bytes]);
  }
  // Adds a sample of a pool that belongs to no device.
  void AddOutOfMemory(absl::string_view pool, int64_t refused, const std::string& of) {
    samples_[Metric::out_of_memory].push_back(
        {{{"device", of}, {"pool", std::string(pool)}}, static_cast<double>(refused)});
  }
  // The samples are theirs afterwards. Families without a sample are there too.
  void MoveTo(Families* families) {
    for (auto& [metric, samples] : samples_) AddFamily(metric, std::move(samples), families);
  }

 private:
  [[gnu::noinline]] void AddExecutor(const DeviceExecutor::Stats& stats) {
    for (size_t level = 0; level < kNumPriorityClasses; ++level) {
      PutLabelled("class", kPriorityClassNames[level], stats.queued_by_class[level], Metric::queue_depth);
    }
    Put(static_cast<double>(stats.queued_bytes), &samples_[Metric::queue_bytes]);
    Put(absl::ToDoubleSeconds(stats.oldest_wait), &samples_[Metric::queue_oldest_age]);
    Put(static_cast<double>(stats.promised_bytes), &samples_[Metric::memory_promised_bytes]);
    for (size_t i = 0; i < stats.busy.size(); ++i) {
      samples_[Metric::executor_busy].push_back(
          {{{"device", device_}, {"worker", std::to_string(i)}}, absl::ToDoubleSeconds(stats.busy[i])});
    }
    AddOutOfMemory("runs", stats.out_of_memory, device_);
    Put(static_cast<double>(stats.events.segments), &samples_[Metric::segment_launches]);
    Put(stats.events.is_up ? 1 : 0, &samples_[Metric::device_up]);
    for (size_t i = 0; i < kNumDeviceFaults; ++i) {
      PutLabelled("kind", kDeviceFaultNames[i], stats.events.faults[i], Metric::device_errors);
    }
  }

  [[gnu::noinline]] void AddMemory(const MemoryStats& memory) {
    PutLabelled("result", "allocated", memory.allocated, Metric::memory_blocks);
    PutLabelled("result", "reused", memory.reused, Metric::memory_blocks);
    PutLabelled("result", "trimmed", memory.trimmed, Metric::memory_blocks);
    PutLabelled("state", "in_use", memory.in_use_bytes, Metric::memory_bytes);
    PutLabelled("state", "free", memory.free_bytes, Metric::memory_bytes);
    Put(static_cast<double>(memory.peak_in_use_bytes), &samples_[Metric::memory_peak_bytes]);
    AddOutOfMemory("tensors", memory.refused, device_);
  }

  void Put(double value, std::vector<Sample>* samples) const { samples->push_back({{{"device", device_}}, value}); }
  void PutLabelled(const char* label, absl::string_view value, int64_t number, Metric metric) {
    samples_[metric].push_back({{{"device", device_}, {label, std::string(value)}}, static_cast<double>(number)});
  }

  std::string device_;
  // Also of a server without devices.
  std::map<Metric, std::vector<Sample>> samples_ = {
      {Metric::device_errors, {}},     {Metric::device_memory_bytes, {}},   {Metric::device_up, {}},
      {Metric::executor_busy, {}},     {Metric::memory_blocks, {}},         {Metric::memory_bytes, {}},
      {Metric::memory_peak_bytes, {}}, {Metric::memory_promised_bytes, {}}, {Metric::out_of_memory, {}},
      {Metric::queue_bytes, {}},       {Metric::queue_depth, {}},           {Metric::queue_oldest_age, {}},
      {Metric::resident_bytes, {}},    {Metric::resident_tensors, {}},      {Metric::segment_launches, {}}};
};

// `payloads` and `shared`: refusals of the host's pools.
[[gnu::noinline]] void AddDevices(const ExecutorPool& executors, const CollectedMetrics::Resident& resident,
                                  int64_t payloads, int64_t shared, Families* families) {
  DeviceSamples samples;
  for (const auto& executor : executors.all()) {
    const auto kept = resident.devices.find(executor->device());
    samples.Add(*executor, kept == resident.devices.end() ? CollectedMetrics::Resident::Device{} : kept->second);
  }
  samples.AddOutOfMemory("payloads", payloads, "host");
  samples.AddOutOfMemory("shared", shared, "host");
  samples.MoveTo(families);
}

[[gnu::noinline]] void AddSessions(const CollectedMetrics::Resident& resident, Families* families) {
  AddNumber(Metric::sessions, resident.sessions, families);
  AddNumber(Metric::sessions_expired, resident.expired, families);
  std::vector<Sample> evictions;
  for (const auto& [reason, count] : resident.evictions) {
    evictions.push_back({{{"reason", reason}}, static_cast<double>(count)});
  }
  AddFamily(Metric::tensor_evictions, std::move(evictions), families);
}

[[gnu::noinline]] void AddQuotas(const CollectedMetrics::Quotas& quotas, Families* families) {
  std::vector<Sample> samples;
  for (const auto& [resource, shares] : quotas) {
    for (const auto& [tenant, share] : shares) samples.push_back({{{"resource", resource}, {"tenant", tenant}}, share});
  }
  AddFamily(Metric::tenant_quota_ratio, std::move(samples), families);
}

[[gnu::noinline]] void AddShared(const CollectedMetrics::Shared& shared, Families* families) {
  std::vector<Sample> refusals;
  for (const auto& [reason, count] : shared.refusals) {
    refusals.push_back({{{"reason", reason}}, static_cast<double>(count)});
  }
  AddNumber(Metric::shared_memory_bytes, shared.bytes, families);
  AddFamily(Metric::shared_memory_refusals, std::move(refusals), families);
  AddNumber(Metric::shared_memory_regions, shared.regions, families);
}

[[gnu::noinline]] void AddAdmission(const CollectedMetrics::Admission& admission, Families* families) {
  AddNumber(Metric::draining, int64_t{admission.draining}, families);
  AddNumber(Metric::ready, int64_t{admission.ready}, families);
  AddNumber(Metric::rpc_in_flight_bytes, admission.in_flight_bytes, families);
}

[[gnu::noinline]] void AddConnections(const std::map<std::string, CollectedMetrics::Connections>& connections,
                                      Families* families) {
  std::vector<Sample> open, refused, ended;
  for (const auto& [listener, stats] : connections) {
    open.push_back({{{"listener", listener}}, static_cast<double>(stats.places.open)});
    refused.push_back({{{"listener", listener}}, static_cast<double>(stats.places.refused)});
    const std::pair<const char*, int64_t> reasons[] = {
        {"headers", stats.ended.for_headers}, {"cancels", stats.ended.for_cancels},
        {"frames", stats.ended.for_frames},   {"settings", stats.ended.for_settings},
        {"unread", stats.ended.for_unread},   {"unused", stats.places.unused}};
    for (const auto& [reason, count] : reasons) {
      ended.push_back({{{"listener", listener}, {"reason", reason}}, static_cast<double>(count)});
    }
  }
  AddFamily(Metric::connections, std::move(open), families);
  AddFamily(Metric::connections_refused, std::move(refused), families);
  AddFamily(Metric::connections_ended, std::move(ended), families);
}

[[gnu::noinline]] void AddTables(const CollectedMetrics::Tables& fft, Families* families) {
  AddNumber(Metric::fft_table_bytes, fft.bytes, families);
  AddNumber(Metric::fft_table_evictions, fft.evictions, families);
  std::vector<Sample> lookups;
  lookups.push_back(Result("hit", fft.hits));
  lookups.push_back(Result("miss", fft.misses));
  AddFamily(Metric::fft_table_lookups, std::move(lookups), families);
}

std::vector<Sample> Labelled(const char* label, const CollectedMetrics::Cuda::Counts& counts) {
  std::vector<Sample> samples;
  for (const auto& [value, count] : counts) samples.push_back({{{label, value}}, static_cast<double>(count)});
  return samples;
}

[[gnu::noinline]] void AddCuda(const CollectedMetrics::Cuda& cuda, Families* families) {
  std::vector<Sample> copied, direct, contexts, graphs, kept_graphs;
  for (const auto& [device, counts] : cuda.devices) {
    for (const auto& [direction, bytes] : counts.copied) {
      copied.push_back({{{"device", device}, {"direction", direction}}, static_cast<double>(bytes)});
    }
    for (const auto& [direction, bytes] : counts.direct) {
      direct.push_back({{{"device", device}, {"direction", direction}}, static_cast<double>(bytes)});
    }
    for (const auto& [event, count] : counts.contexts) {
      contexts.push_back({{{"device", device}, {"event", event}}, static_cast<double>(count)});
    }
    for (const auto& [event, count] : counts.graphs) {
      graphs.push_back({{{"device", device}, {"event", event}}, static_cast<double>(count)});
    }
    kept_graphs.push_back({{{"device", device}}, static_cast<double>(counts.kept_graphs)});
  }
  AddFamily(Metric::cuda_contexts, std::move(contexts), families);
  AddFamily(Metric::cuda_copied_bytes, std::move(copied), families);
  AddFamily(Metric::cuda_direct_bytes, std::move(direct), families);
  AddFamily(Metric::cuda_graphs, std::move(kept_graphs), families);
  AddFamily(Metric::cuda_graph_events, std::move(graphs), families);
  AddFamily(Metric::cuda_kernel_bytes, Labelled("tier", cuda.kernel_bytes), families);
  AddNumber(Metric::cuda_kernel_compile_seconds, absl::ToDoubleSeconds(cuda.compiling), families);
  AddFamily(Metric::cuda_kernel_errors, Labelled("reason", cuda.kernel_errors), families);
  AddFamily(Metric::cuda_kernels, Labelled("result", cuda.kernels), families);
  AddNumber(Metric::cuda_pinned_bytes, static_cast<double>(cuda.pinned_bytes), families);
  AddFamily(Metric::cuda_pinnings, Labelled("result", cuda.pinnings), families);
}

[[gnu::noinline]] void AddBuild(const std::string& version, const std::string& git, Families* families) {
  AddFamily(Metric::build_info,
            {{{{"version", version}, {"git", git}, {"grpc", grpc::Version()}, {"compiler", kCompiler}}, 1.0}},
            families);
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectedMetrics::Collect() const {
  const ProgramCache::Stats cache = sources_.cache->stats();
  Families families;
  AddBuild(sources_.version, sources_.git, &families);
  AddCompilations(cache, sources_.compile_pool->stats(), &families);
  AddTurns(sources_.turns->stats(), &families);
  AddNumber(Metric::reading_queue_depth, static_cast<double>(sources_.readers->stats().queued), &families);
  AddPrograms(cache, sources_.store == nullptr ? ProgramStore::Stats() : sources_.store->stats(), &families);
  AddQuarantine(sources_.quarantine == nullptr ? Quarantine::Counts() : sources_.quarantine->counts(), &families);
  AddBindings(*sources_.bindings, &families);
  const Resident resident = sources_.resident();
  const Shared shared = sources_.shared();
  AddDevices(*sources_.executors, resident, sources_.payloads->stats().refused, shared.out_of_memory, &families);
  AddSessions(resident, &families);
  AddQuotas(sources_.quotas(), &families);
  AddShared(shared, &families);
  AddAdmission(sources_.admission(), &families);
  AddConnections(sources_.connections(), &families);
  AddNumber(Metric::grpc_calls, static_cast<double>(CountBegunCalls()), &families);
  AddNumber(Metric::grpc_errors, static_cast<double>(CountGrpcErrors()), &families);
  AddTables(sources_.fft_tables(), &families);
  AddCuda(sources_.cuda(), &families);
  AddFamily(Metric::limit, LimitsNow(), &families);
  AddNumber(Metric::log_dropped, static_cast<double>(sources_.log->dropped_lines()), &families);
  AddNumber(Metric::start_time, absl::ToDoubleSeconds(start_ - absl::UnixEpoch()), &families);
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return families;
}

}  // namespace tensord::server
