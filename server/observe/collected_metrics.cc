#include "server/observe/collected_metrics.h"

#include <grpcpp/grpcpp.h>

#include <utility>

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

std::vector<prometheus::MetricFamily> CollectedMetrics::Collect() const {
  const Admission admission = sources_.admission();
  const ProgramCache::Stats cache = sources_.cache->stats();
  const ProgramStore::Stats disk = sources_.store == nullptr ? ProgramStore::Stats() : sources_.store->stats();
  const Tables fft = sources_.fft_tables();
  const Resident resident = sources_.resident();
  const CompilePool::Stats compiler = sources_.compile_pool->stats();
  std::vector<Sample> depth, oldest, promised, busy, blocks, bytes, peak, resident_tensors, resident_bytes;
  for (const auto& executor : sources_.executors->all()) {
    const DeviceExecutor::Stats stats = executor->stats();
    for (size_t level = 0; level < kNumPriorityClasses; ++level) {
      depth.push_back({{{"device", executor->device()}, {"class", std::string(kPriorityClassNames[level])}},
                       static_cast<double>(stats.queued_by_class[level])});
    }
    oldest.push_back({{{"device", executor->device()}}, absl::ToDoubleSeconds(stats.oldest_wait)});
    promised.push_back({{{"device", executor->device()}}, static_cast<double>(stats.promised_bytes)});
    busy.push_back({{{"device", executor->device()}}, absl::ToDoubleSeconds(stats.busy)});
    const MemoryStats memory = executor->backend()->Memory();
    const auto add = [&](const char* label, const char* value, int64_t number, std::vector<Sample>* samples) {
      samples->push_back({{{"device", executor->device()}, {label, value}}, static_cast<double>(number)});
    };
    add("result", "allocated", memory.allocated, &blocks);
    add("result", "reused", memory.reused, &blocks);
    add("result", "trimmed", memory.trimmed, &blocks);
    add("state", "in_use", memory.in_use_bytes, &bytes);
    add("state", "free", memory.free_bytes, &bytes);
    const auto kept = resident.devices.find(executor->device());
    const Resident::Device on_device = kept == resident.devices.end() ? Resident::Device{} : kept->second;
    resident_tensors.push_back({{{"device", executor->device()}}, static_cast<double>(on_device.tensors)});
    resident_bytes.push_back({{{"device", executor->device()}}, static_cast<double>(on_device.bytes)});
    peak.push_back({{{"device", executor->device()}}, static_cast<double>(memory.peak_in_use_bytes)});
  }
  std::vector<prometheus::MetricFamily> families;
  families.push_back(
      FamilyOf(Metric::build_info,
               {{{{"version", sources_.version}, {"grpc", grpc::Version()}, {"compiler", kCompiler}}, 1.0}}));
  families.push_back(FamilyOf(Metric::compile_in_flight, static_cast<double>(compiler.running)));
  families.push_back(FamilyOf(Metric::compile_queue_depth, static_cast<double>(compiler.queued)));
  families.push_back(
      FamilyOf(Metric::compile_requests,
               {Result("hit_memory", cache.hits), Result("hit_disk", cache.restored), Result("joined", cache.joined),
                Result("miss", cache.compiled), Result("failed", cache.failed), Result("negative", cache.negative)}));
  families.push_back(FamilyOf(Metric::draining, admission.draining ? 1 : 0));
  families.push_back(FamilyOf(Metric::executor_busy, std::move(busy)));
  families.push_back(FamilyOf(Metric::fft_table_bytes, static_cast<double>(fft.bytes)));
  families.push_back(FamilyOf(Metric::fft_table_lookups, {Result("hit", fft.hits), Result("miss", fft.misses)}));
  families.push_back(FamilyOf(Metric::limit, LimitsNow()));
  families.push_back(FamilyOf(Metric::log_dropped, static_cast<double>(sources_.log->dropped_lines())));
  families.push_back(FamilyOf(Metric::memory_blocks, std::move(blocks)));
  families.push_back(FamilyOf(Metric::memory_bytes, std::move(bytes)));
  families.push_back(FamilyOf(Metric::memory_peak_bytes, std::move(peak)));
  families.push_back(FamilyOf(Metric::memory_promised_bytes, std::move(promised)));
  families.push_back(FamilyOf(Metric::program_cache_bytes, Tiers(cache.bytes, disk.bytes)));
  families.push_back(FamilyOf(Metric::program_cache_entries, Tiers(cache.entries, disk.entries)));
  families.push_back(FamilyOf(Metric::program_cache_evictions, Tiers(cache.evictions, disk.evictions)));
  families.push_back(FamilyOf(Metric::program_cache_load_errors, LoadErrors(disk)));
  families.push_back(FamilyOf(
      Metric::program_cache_writes,
      {Result("written", disk.written), Result("error", disk.write_errors), Result("left_out", disk.left_out)}));
  families.push_back(FamilyOf(Metric::queue_depth, std::move(depth)));
  families.push_back(FamilyOf(Metric::queue_oldest_age, std::move(oldest)));
  families.push_back(FamilyOf(Metric::ready, admission.ready ? 1 : 0));
  families.push_back(FamilyOf(Metric::resident_bytes, std::move(resident_bytes)));
  families.push_back(FamilyOf(Metric::resident_tensors, std::move(resident_tensors)));
  families.push_back(FamilyOf(Metric::rpc_in_flight_bytes, static_cast<double>(admission.in_flight_bytes)));
  families.push_back(FamilyOf(Metric::sessions, static_cast<double>(resident.sessions)));
  families.push_back(FamilyOf(Metric::sessions_expired, static_cast<double>(resident.expired)));
  const Shared shared = sources_.shared();
  std::vector<Sample> refusals;
  for (const auto& [reason, count] : shared.refusals) {
    refusals.push_back({{{"reason", reason}}, static_cast<double>(count)});
  }
  families.push_back(FamilyOf(Metric::shared_memory_bytes, static_cast<double>(shared.bytes)));
  families.push_back(FamilyOf(Metric::shared_memory_refusals, std::move(refusals)));
  families.push_back(FamilyOf(Metric::shared_memory_regions, static_cast<double>(shared.regions)));
  families.push_back(FamilyOf(Metric::start_time, absl::ToDoubleSeconds(start_ - absl::UnixEpoch())));
  return families;
}

}  // namespace tensord::server
