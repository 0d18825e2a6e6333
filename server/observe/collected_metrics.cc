#include "server/observe/collected_metrics.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/observe/metric_sample.h"
#include "server/observe/metrics.h"

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
  std::vector<Sample> requests;
  requests.push_back(Result("hit_memory", cache.hits));
  requests.push_back(Result("hit_disk", cache.restored));
  requests.push_back(Result("joined", cache.joined));
  requests.push_back(Result("miss", cache.compiled));
  requests.push_back(Result("failed", cache.failed));
  requests.push_back(Result("negative", cache.negative));
  AddFamily(Metric::compile_requests, std::move(requests), families);
}

[[gnu::noinline]] void AddPrograms(const ProgramCache::Stats& cache, const ProgramStore::Stats& disk,
                                   Families* families) {
  AddFamily(Metric::program_cache_bytes, Tiers(cache.bytes, disk.bytes), families);
  AddFamily(Metric::program_cache_entries, Tiers(cache.entries, disk.entries), families);
  AddFamily(Metric::program_cache_evictions, Tiers(cache.evictions, disk.evictions), families);
  AddFamily(Metric::program_cache_load_errors, LoadErrors(disk), families);
  std::vector<Sample> writes;
  writes.push_back(Result("written", disk.written));
  writes.push_back(Result("error", disk.write_errors));
  writes.push_back(Result("left_out", disk.left_out));
  AddFamily(Metric::program_cache_writes, std::move(writes), families);
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
  AddNumber(Metric::binding_bytes, bindings.counts(SizedKind::kProgram).bytes, families);
  AddFamily(Metric::binding_entries, std::move(entries), families);
  AddFamily(Metric::binding_evictions, std::move(evictions), families);
  AddFamily(Metric::binding_lookups, std::move(lookups), families);
}

[[gnu::noinline]] void AddDevices(const ExecutorPool& executors, const CollectedMetrics::Resident& resident,
                                  Families* families) {
  std::vector<Sample> depth, oldest, promised, busy, blocks, bytes, peak, tensors, resident_bytes;
  for (const auto& executor : executors.all()) {
    const DeviceExecutor::Stats stats = executor->stats();
    const MemoryStats memory = executor->backend()->Memory();
    const auto kept = resident.devices.find(executor->device());
    const auto on_device = kept == resident.devices.end() ? CollectedMetrics::Resident::Device{} : kept->second;
    const auto add = [&](double value, std::vector<Sample>* samples) {
      samples->push_back({{{"device", executor->device()}}, value});
    };
    const auto add_labelled = [&](const char* label, absl::string_view value, int64_t number,
                                  std::vector<Sample>* samples) {
      samples->push_back({{{"device", executor->device()}, {label, std::string(value)}}, static_cast<double>(number)});
    };
    for (size_t level = 0; level < kNumPriorityClasses; ++level) {
      add_labelled("class", kPriorityClassNames[level], stats.queued_by_class[level], &depth);
    }
    add(absl::ToDoubleSeconds(stats.oldest_wait), &oldest);
    add(static_cast<double>(stats.promised_bytes), &promised);
    add(absl::ToDoubleSeconds(stats.busy), &busy);
    add_labelled("result", "allocated", memory.allocated, &blocks);
    add_labelled("result", "reused", memory.reused, &blocks);
    add_labelled("result", "trimmed", memory.trimmed, &blocks);
    add_labelled("state", "in_use", memory.in_use_bytes, &bytes);
    add_labelled("state", "free", memory.free_bytes, &bytes);
    add(static_cast<double>(memory.peak_in_use_bytes), &peak);
    add(static_cast<double>(on_device.tensors), &tensors);
    add(static_cast<double>(on_device.bytes), &resident_bytes);
  }
  AddFamily(Metric::executor_busy, std::move(busy), families);
  AddFamily(Metric::memory_blocks, std::move(blocks), families);
  AddFamily(Metric::memory_bytes, std::move(bytes), families);
  AddFamily(Metric::memory_peak_bytes, std::move(peak), families);
  AddFamily(Metric::memory_promised_bytes, std::move(promised), families);
  AddFamily(Metric::queue_depth, std::move(depth), families);
  AddFamily(Metric::queue_oldest_age, std::move(oldest), families);
  AddFamily(Metric::resident_bytes, std::move(resident_bytes), families);
  AddFamily(Metric::resident_tensors, std::move(tensors), families);
  AddNumber(Metric::sessions, resident.sessions, families);
  AddNumber(Metric::sessions_expired, resident.expired, families);
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

[[gnu::noinline]] void AddTables(const CollectedMetrics::Tables& fft, Families* families) {
  AddNumber(Metric::fft_table_bytes, fft.bytes, families);
  AddNumber(Metric::fft_table_evictions, fft.evictions, families);
  std::vector<Sample> lookups;
  lookups.push_back(Result("hit", fft.hits));
  lookups.push_back(Result("miss", fft.misses));
  AddFamily(Metric::fft_table_lookups, std::move(lookups), families);
}

[[gnu::noinline]] void AddBuild(const std::string& version, Families* families) {
  AddFamily(Metric::build_info, {{{{"version", version}, {"grpc", grpc::Version()}, {"compiler", kCompiler}}, 1.0}},
            families);
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectedMetrics::Collect() const {
  const ProgramCache::Stats cache = sources_.cache->stats();
  Families families;
  AddBuild(sources_.version, &families);
  AddCompilations(cache, sources_.compile_pool->stats(), &families);
  AddPrograms(cache, sources_.store == nullptr ? ProgramStore::Stats() : sources_.store->stats(), &families);
  AddBindings(*sources_.bindings, &families);
  AddDevices(*sources_.executors, sources_.resident(), &families);
  AddShared(sources_.shared(), &families);
  AddAdmission(sources_.admission(), &families);
  AddTables(sources_.fft_tables(), &families);
  AddFamily(Metric::limit, LimitsNow(), &families);
  AddNumber(Metric::log_dropped, static_cast<double>(sources_.log->dropped_lines()), &families);
  AddNumber(Metric::start_time, absl::ToDoubleSeconds(start_ - absl::UnixEpoch()), &families);
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return families;
}

}  // namespace tensord::server
