#include <prometheus/text_serializer.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observe/logs/log.h"
#include "server/observe/metrics/collected_metrics.h"
#include "server/observe/metrics/control_metrics.h"
#include "server/observe/metrics/metrics.h"
#include "server/observe/metrics/metrics_page.h"
#include "server/observe/metrics/process_metrics.h"
#include "server/observe/metrics/segment_metrics.h"
#include "server/observe/metrics/trace_metrics.h"

namespace tensord::server {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

RequestRecord Record() {
  RequestRecord record;
  record.method = RpcMethod::kExecute;
  record.peer = "unix:";
  record.tenant = "team";
  record.device = "cpu:0";
  const auto start = StageTimes::Clock::now();
  record.stages = StageTimes(start);
  record.stages.EndAt(Stage::kDecode, start + std::chrono::microseconds(3));
  record.stages.EndAt(Stage::kCompute, start + std::chrono::microseconds(23));
  record.total = absl::Microseconds(40);
  record.received_bytes = 100;
  record.sent_bytes = 10;
  return record;
}

std::string Text(const std::vector<prometheus::MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

TEST(MetricsTest, NamesAreUniqueAndExplained) {
  std::set<std::string> names;
  for (const MetricInfo& info : AllMetrics()) {
    EXPECT_TRUE(names.insert(std::string(info.name)).second) << std::string(info.name);
    EXPECT_FALSE(info.help.empty());
  }
}

// The rules are those of https://prometheus.io/docs/practices/naming.
TEST(MetricsTest, NamesFollowTheConventions) {
  for (const MetricInfo& info : AllMetrics()) {
    const std::string name(info.name);
    EXPECT_THAT(name, MatchesRegex("(tensord|process)_[a-z][a-z0-9_]*[a-z0-9]"));
    EXPECT_THAT(std::string(info.type), AnyOf("counter", "gauge", "histogram")) << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"), info.type == "counter") << name;
    if (info.type == "histogram") {
      EXPECT_THAT(name, MatchesRegex(".*_(seconds|bytes)")) << "the unit comes last";
    }
    for (const char* reserved : {"_count", "_sum", "_bucket"}) EXPECT_FALSE(absl::EndsWith(name, reserved)) << name;
    for (const char* wrong : {"_ms", "_us", "_millis", "_kb", "_mb", "_percent"}) {
      EXPECT_EQ(name.find(wrong), std::string::npos) << name << " is in another unit than the base one";
    }
    EXPECT_THAT(std::string(info.help), EndsWith(".")) << name;
    for (absl::string_view label : absl::StrSplit(info.labels, ',', absl::SkipEmpty())) {
      EXPECT_THAT(std::string(label), MatchesRegex("[a-z]+")) << name;
      EXPECT_THAT(std::string(label), Not(AnyOf("le", "job", "instance"))) << "Prometheus has these itself: " << name;
    }
  }
}

// However many there are.
TEST(MetricsTest, TenantsAreCountedUpToABound) {
  Metrics metrics({});
  for (int i = 0; i < 500; ++i) {
    RequestRecord record = Record();
    record.tenant = absl::StrCat("tenant-", i);
    const auto start = StageTimes::Clock::now();
    record.stages = StageTimes(start);
    record.stages.EndAt(Stage::kCompute, start + std::chrono::seconds(2));
    metrics.CallStarted(record.method);
    metrics.CallEnded(record);
  }
  const std::string text = Text(metrics.registry()->Collect());
  EXPECT_THAT(text, HasSubstr("tensord_tenant_requests_total{tenant=\"tenant-0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tensord_tenant_device_seconds_total{tenant=\"tenant-99\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("tenant-100\"")));
  EXPECT_THAT(text, HasSubstr("tensord_tenant_requests_total{tenant=\"other\"} 400\n"));
}

// Holds also for shares of resources, and for tenants that have none.
TEST(MetricsTest, SharesOfTenantsHaveTheBoundOfTheirNames) {
  Metrics metrics({});
  std::map<std::string, double> shares;
  for (int i = 0; i < 500; ++i) shares[absl::StrCat("tenant-", i)] = i / 500.0;
  const std::map<std::string, double> named = metrics.tenants().ByName(shares);
  EXPECT_EQ(named.size(), TenantSeries::kMaxTenants + 1);
  EXPECT_EQ(named.at("other"), 499 / 500.0) << "the one that has most";
  const std::map<std::string, double> later = metrics.tenants().ByName({{"tenant-0", 0.5}, {"new", 0.25}});
  EXPECT_EQ(later.size(), named.size());
  EXPECT_EQ(later.at("tenant-0"), 0.5);
  EXPECT_EQ(later.at("tenant-1"), 0);
  EXPECT_EQ(later.at("other"), 0.25);
}

TEST(MetricsTest, BucketsAreThoseOfTheirUnit) {
  for (size_t i = 0; i < AllMetrics().size(); ++i) {
    const MetricInfo& info = AllMetrics()[i];
    const std::vector<double> bounds = BoundsOf(static_cast<Metric>(i));
    EXPECT_EQ(!bounds.empty(), info.type == "histogram") << std::string(info.name);
    if (bounds.empty()) continue;
    EXPECT_GT(bounds.front(), 0) << std::string(info.name);
    EXPECT_GT(info.buckets.factor, 1) << std::string(info.name);
    EXPECT_LE(bounds.size(), 24u) << std::string(info.name);
    if (!absl::EndsWith(info.name, "_bytes")) continue;
    double bound = 1024;
    for (size_t n = 0; n < bounds.size(); ++n, bound *= 8) EXPECT_EQ(bounds[n], bound) << std::string(info.name);
  }
  const std::vector<double> segments = BoundsOf(Metric::segment_seconds);
  ASSERT_EQ(segments.size(), SegmentTimes::kNumBounds);
  for (size_t i = 0; i < segments.size(); ++i) {
    EXPECT_EQ(segments[i], absl::ToDoubleSeconds(SegmentTimes::Bound(i))) << "as they are counted";
  }
}

TEST(MetricsTest, CountsWhatIsMovedAndCompiled) {
  Metrics metrics({});
  metrics.Transferred(Transfer::kPut, 3000, absl::Milliseconds(2));
  metrics.Transferred(Transfer::kPut, 5, absl::Milliseconds(2));
  metrics.Compiled(CompilePhase::kPasses, absl::Milliseconds(3));
  const std::string text = Text(metrics.registry()->Collect());
  EXPECT_THAT(text, HasSubstr("tensord_transfer_bytes_total{direction=\"put\"} 3005\n"));
  EXPECT_THAT(text, HasSubstr("tensord_transfer_bytes_total{direction=\"shared\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tensord_transfer_seconds_count{direction=\"put\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tensord_transfer_size_bytes_bucket{direction=\"put\",le=\"1024\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tensord_transfer_size_bytes_bucket{direction=\"put\",le=\"8192\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tensord_compile_seconds_count{phase=\"passes\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tensord_compile_seconds_count{phase=\"sizes\"} 0\n"));
}

TEST(ProcessMetricsTest, ReadsTheLineOfAnyProgram) {
  const std::string rest =
      " S 1 2 3 4 -1 4194560 5 6 7 8 250 50 11 12 20 0 9 0 123456 1048576 42 18446744073709551615 1 1 0 0";
  for (const char* name : {"1 (tensord)", "77 (a) b) (c)", "1 ()"}) {
    const std::optional<ProcessStat> stat = ParseProcessStat(name + rest);
    ASSERT_TRUE(stat.has_value()) << name;
    EXPECT_EQ(stat->user_ticks, 250);
    EXPECT_EQ(stat->system_ticks, 50);
    EXPECT_EQ(stat->threads, 9);
    EXPECT_EQ(stat->start_ticks, 123456);
    EXPECT_EQ(stat->virtual_bytes, 1048576);
    EXPECT_EQ(stat->resident_pages, 42);
  }
  for (const char* wrong : {"", "1", "1 (x", "1 (x) S 1 2", "1 (x) S a b c d e f g h i j k l m n o p q r s t u v"}) {
    EXPECT_FALSE(ParseProcessStat(wrong).has_value()) << wrong;
  }
}

TEST(ProcessMetricsTest, IsThisProcess) {
  std::map<std::string, double> values;
  const absl::Time before = absl::Now();
  for (const prometheus::MetricFamily& family : ProcessMetrics().Collect()) {
    ASSERT_EQ(family.metric.size(), 1u);
    const prometheus::ClientMetric& metric = family.metric.front();
    values[family.name] = family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  rusage usage{};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  const double used = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  EXPECT_LE(values["process_cpu_seconds_total"], used + 0.02) << "two ticks";
  EXPECT_GT(values["process_resident_memory_bytes"], 1 << 20);
  EXPECT_LE(values["process_resident_memory_bytes"], values["process_virtual_memory_bytes"]);
  EXPECT_GE(values["process_threads"], 1);
  EXPECT_GE(values["process_open_fds"], 3);
  EXPECT_LE(values["process_open_fds"], values["process_max_fds"]);
  EXPECT_LE(values["process_start_time_seconds"], absl::ToDoubleSeconds(before - absl::UnixEpoch()) + 1);
  EXPECT_GT(values["process_start_time_seconds"], absl::ToDoubleSeconds(before - absl::UnixEpoch()) - 86400);
  EXPECT_GT(values["tensord_memory_limit_bytes"], 0);
  EXPECT_LE(values["tensord_memory_limit_bytes"],
            static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)))
      << "also where no control group bounds it";
}

TEST(ProcessMetricsTest, CountsOpenDescriptors) {
  const auto open_now = [] {
    for (const prometheus::MetricFamily& family : ProcessMetrics().Collect()) {
      if (family.name == "process_open_fds") return family.metric.front().gauge.value;
    }
    return -1.0;
  };
  const double before = open_now();
  const int descriptor = dup(0);
  ASSERT_GE(descriptor, 0);
  EXPECT_EQ(open_now(), before + 1);
  close(descriptor);
  EXPECT_EQ(open_now(), before);
}

TEST(MetricsTest, CountsACall) {
  const std::vector<std::string> devices = {"cpu:0"};
  Metrics metrics(devices);
  metrics.CallStarted(RpcMethod::kExecute);
  EXPECT_THAT(Text(metrics.registry()->Collect()), HasSubstr("tensord_rpc_in_flight{method=\"Execute\"} 1"));
  metrics.CallEnded(Record());
  RequestRecord failed = Record();
  failed.code = absl::StatusCode::kDeadlineExceeded;
  metrics.CallStarted(RpcMethod::kExecute);
  metrics.CallEnded(failed);
  const std::string text = Text(metrics.registry()->Collect());
  EXPECT_THAT(text, HasSubstr("tensord_rpc_in_flight{method=\"Execute\"} 0"));
  EXPECT_THAT(text, HasSubstr("tensord_rpc_handled_total{code=\"OK\",method=\"Execute\"} 1"));
  EXPECT_THAT(text, HasSubstr("tensord_rpc_handled_total{code=\"DEADLINE_EXCEEDED\",method=\"Execute\"} 1"));
  EXPECT_THAT(text, HasSubstr("tensord_execute_total{device=\"cpu:0\",outcome=\"ok\"} 1"));
  EXPECT_THAT(text, HasSubstr("tensord_execute_total{device=\"cpu:0\",outcome=\"deadline\"} 1"));
  EXPECT_THAT(text, HasSubstr("tensord_execute_stage_seconds_count{device=\"cpu:0\",stage=\"compute\"} 2"));
  EXPECT_THAT(text, HasSubstr("tensord_execute_stage_seconds_count{device=\"cpu:0\",stage=\"queue\"} 0"));
  EXPECT_THAT(text, HasSubstr("tensord_rpc_received_bytes_total{method=\"Execute\"} 200"));
  EXPECT_THAT(text, HasSubstr("tensord_rpc_sent_bytes_total{method=\"Execute\"} 20"));
}

TEST(MetricsTest, CountsWhatIsRefusedForWantOfRoom) {
  Metrics metrics({});
  const auto refuse = [&metrics](const char* reason, const char* limit) {
    RequestRecord record = Record();
    record.code = absl::StatusCode::kResourceExhausted;
    record.reason = reason;
    record.limit = limit;
    metrics.CallStarted(record.method);
    metrics.CallEnded(record);
  };
  refuse("QUEUE_FULL", "cpu.queue_length");
  refuse("QUEUE_FULL", "scheduling.max_wait_ms");
  refuse("LIMIT_EXCEEDED", "in_flight_bytes");
  refuse("LIMIT_EXCEEDED", "graph_nodes");
  refuse("DEADLINE_UNREACHABLE", "");
  refuse("RATE_LIMITED", "");
  const std::string text = Text(metrics.registry()->Collect());
  EXPECT_THAT(text, HasSubstr("tensord_admission_rejected_total{reason=\"queue_full\"} 2"));
  EXPECT_THAT(text, HasSubstr("tensord_admission_rejected_total{reason=\"bytes\"} 1"));
  EXPECT_THAT(text, HasSubstr("tensord_admission_rejected_total{reason=\"deadline_unreachable\"} 1"));
  EXPECT_THAT(text, HasSubstr("tensord_admission_rejected_total{reason=\"rate\"} 1"));
  EXPECT_THAT(text, HasSubstr("tensord_admission_rejected_total{reason=\"memory\"} 0"));
}

// Every declared metric is exported, and every exported one is declared.
TEST(MetricsTest, WhatIsDeclaredIsExported) {
  const std::vector<std::string> devices = {"cpu:0"};
  Metrics metrics(devices);
  const ControlMetrics control(*metrics.registry());
  const TraceMetrics trace(*metrics.registry());
  metrics.CallStarted(RpcMethod::kExecute);
  metrics.CallEnded(Record());
  RequestRecord other = Record();
  other.method = RpcMethod::kCompile;
  metrics.CallStarted(other.method);
  metrics.CallEnded(other);
  EXPECT_THAT(Text(metrics.registry()->Collect()),
              HasSubstr("tensord_rpc_stage_seconds_count{method=\"Compile\",stage=\"decode\"} 1"));
  const ExecutorPool executors;
  CompilePool pool(1, 1);
  const TurnPool turns({}), readers({});
  const SegmentTimes times;
  const ProgramCache cache({.max_bytes = 1}, &pool);
  BindingStats bindings;
  bindings.Count(SizedKind::kProgram, BindingStats::kJoined);
  bindings.Count(SizedKind::kStage, BindingStats::kEvicted);
  bindings.AddKept(SizedKind::kProgram, 2, 300);
  Log log({.level = LogLevel::kOff});
  const auto payloads = HostBufferPool::Create(1, 0);
  EXPECT_FALSE(payloads->Allocate(2).ok());
  const CollectedMetrics collected(
      {.version = "1",
       .git = "abc",
       .executors = &executors,
       .cache = &cache,
       .compile_pool = &pool,
       .turns = &turns,
       .readers = &readers,
       .bindings = &bindings,
       .payloads = payloads.get(),
       .log = &log,
       .admission = [] { return CollectedMetrics::Admission{.ready = true}; },
       .connections =
           [] {
             return std::map<std::string, CollectedMetrics::Connections>{
                 {"calls",
                  {.places = {.open = 6, .refused = 8, .unused = 5},
                   .ended = {.for_headers = 2, .for_cancels = 4, .for_settings = 7}}}};
           },
       .fft_tables = [] { return CollectedMetrics::Tables{.bytes = 5, .hits = 3, .misses = 2, .evictions = 9}; },
       .cuda =
           [] {
             return CollectedMetrics::Cuda{.devices = {{"cuda:0",
                                                        {.copied = {{"to", 300}, {"from", 20}},
                                                         .direct = {{"to", 200}},
                                                         .contexts = {{"lost", 2}}}}},
                                           .pinnings = {{"refused", 5}},
                                           .pinned_bytes = 4096,
                                           .kernels = {{"memory", 4}, {"compiled", 9}},
                                           .kernel_errors = {{"damaged", 1}},
                                           .kernel_bytes = {{"disk", 777}},
                                           .compiling = absl::Milliseconds(1500)};
           },
       .resident =
           [] {
             return CollectedMetrics::Resident{
                 .sessions = 2, .expired = 1, .devices = {{"cpu:0", {3, 400}}}, .evictions = {{"deleted", 6}}};
           },
       .shared =
           [] {
             return CollectedMetrics::Shared{
                 .regions = 1, .bytes = 4096, .out_of_memory = 2, .refusals = {{"limit", 7}}};
           },
       .quotas =
           [] {
             return CollectedMetrics::Quotas{{"sessions", {{"team", 0.5}}}};
           },
       .limits =
           [] {
             return std::vector<std::pair<std::string, int64_t>>{{"cpu.queue_length", 7}};
           }});
  std::set<std::string> exported, declared;
  const auto borrowed = [](const prometheus::Collectable* source) {
    return std::shared_ptr<prometheus::Collectable>(std::shared_ptr<void>(),
                                                    const_cast<prometheus::Collectable*>(source));
  };
  const MetricsPage page({metrics.registry(), borrowed(&collected), std::make_shared<SegmentMetrics>(&times),
                          std::make_shared<ProcessMetrics>()});
  for (const auto& family : page.Collect()) exported.insert(family.name);
  for (const MetricInfo& info : AllMetrics()) declared.insert(std::string(info.name));
  EXPECT_EQ(exported, declared);
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_ready 1"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_tensor_evictions_total{reason=\"deleted\"} 6"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_out_of_memory_total{device=\"host\",pool=\"payloads\"} 1"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_out_of_memory_total{device=\"host\",pool=\"shared\"} 2"));
  EXPECT_THAT(Text(collected.Collect()),
              HasSubstr("tensord_tenant_quota_ratio{resource=\"sessions\",tenant=\"team\"} 0.5"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_fft_table_lookups_total{result=\"hit\"} 3"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_connections{listener=\"calls\"} 6"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_connections_refused_total{listener=\"calls\"} 8"));
  for (const char* ended : {"headers\"} 2", "cancels\"} 4", "unused\"} 5"}) {
    EXPECT_THAT(Text(collected.Collect()),
                HasSubstr(absl::StrCat("tensord_connections_ended_total{listener=\"calls\",reason=\"", ended)));
  }
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_fft_table_evictions_total 9"));
  for (const char* line :
       {"contexts_total{device=\"cuda:0\",event=\"lost\"} 2",
        "copied_bytes_total{device=\"cuda:0\",direction=\"to\"} 300",
        "copied_bytes_total{device=\"cuda:0\",direction=\"from\"} 20",
        "direct_bytes_total{device=\"cuda:0\",direction=\"to\"} 200", "pinnings_total{result=\"refused\"} 5",
        "pinned_bytes 4096", "kernels_total{result=\"memory\"} 4", "kernels_total{result=\"compiled\"} 9",
        "kernel_errors_total{reason=\"damaged\"} 1", "kernel_bytes{tier=\"disk\"} 777",
        "kernel_compile_seconds_total 1.5"}) {
    EXPECT_THAT(Text(collected.Collect()), HasSubstr(absl::StrCat("tensord_cuda_", line)));
  }
  EXPECT_THAT(Text(collected.Collect()),
              HasSubstr("tensord_binding_lookups_total{kind=\"program\",result=\"joined\"} 1"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_binding_evictions_total{kind=\"stage\"} 1"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_binding_entries{kind=\"program\"} 2"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_binding_bytes 300"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_limit{limit=\"cpu.queue_length\"} 7"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_shared_memory_bytes 4096"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_shared_memory_refusals_total{reason=\"limit\"} 7"));
}

class LogTest : public ::testing::Test {
 protected:
  std::shared_ptr<spdlog::logger> Logger() {
    return std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_));
  }
  std::ostringstream text_;
};

TEST_F(LogTest, OneJsonLineARequest) {
  {
    Log log({}, Logger());
    RequestRecord record = Record();
    record.code = absl::StatusCode::kInvalidArgument;
    record.reason = "NAME_INVALID";
    record.message = "a \"name\"\n";
    record.fingerprint = "0123456789ab";
    record.request_id = "r-1";
    record.trace.context = *ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    record.tenant = "a";
    log.Request(record);
  }
  const std::string line = text_.str();
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_THAT(
      line,
      HasSubstr(
          R"("level":"info","event":"request","method":"Execute","request_id":"r-1",)"
          R"("trace_id":"0af7651916cd43dd8448eb211c80319c","peer":"unix:","tenant":"a","code":"INVALID_ARGUMENT")"));
  EXPECT_THAT(line, HasSubstr(R"("reason":"NAME_INVALID","message":"a \"name\"\n","fingerprint":"0123456789ab")"));
  EXPECT_THAT(line, HasSubstr(R"("decode_us":3,"compute_us":20,"received_bytes":100,"sent_bytes":10,"total_us":40})"));
  EXPECT_THAT(line, Not(HasSubstr("queue_us"))) << "a stage that took no time is absent";
}

TEST_F(LogTest, LevelsAndSwitches) {
  {
    Log log({.level = LogLevel::kWarning}, Logger());
    log.Request(Record());
    log.Event(LogLevel::kInfo, "quiet", "");
    log.Event(LogLevel::kWarning, "loud", "");
    EXPECT_FALSE(log.LogsRequests());
  }
  EXPECT_THAT(text_.str(), HasSubstr("loud"));
  EXPECT_THAT(text_.str(), Not(HasSubstr("quiet")));
  EXPECT_THAT(text_.str(), Not(HasSubstr("request")));
  {
    Log log({.requests = false}, Logger());
    log.Request(Record());
    RequestRecord bug = Record();
    bug.code = absl::StatusCode::kInternal;
    log.Request(bug);
  }
  EXPECT_THAT(text_.str(), HasSubstr("\"level\":\"error\",\"event\":\"request\"")) << "our own bugs are always told";
}

TEST_F(LogTest, TellsOfItsLevelUnderTheOneThatSaysMore) {
  {
    Log log({}, Logger());
    log.SetLevel(LogLevel::kOff);
    log.SetLevel(LogLevel::kDebug);
  }
  EXPECT_THAT(text_.str(), HasSubstr(R"("event":"log level","message":"off")"));
  EXPECT_THAT(text_.str(), HasSubstr(R"("event":"log level","message":"debug")"));
}

TEST_F(LogTest, AuditLinesComeWhateverTheLevelIs) {
  {
    Log log({.level = LogLevel::kError, .requests = false}, Logger());
    log.Event(LogLevel::kInfo, "event", "");
    log.Audit(LogLevel::kInfo, "audit", "first", {});
    log.SetLevel(LogLevel::kOff);
    log.Audit(LogLevel::kInfo, "audit", "second", {});
  }
  EXPECT_THAT(text_.str(), HasSubstr("\"level\":\"info\",\"event\":\"audit\",\"message\":\"first\""));
  EXPECT_THAT(text_.str(), Not(HasSubstr("\"event\":\"event\"")));
  EXPECT_THAT(text_.str(), Not(HasSubstr("second"))) << "a log that is off is";
}

TEST_F(LogTest, LosesLinesRatherThanTime) {
  Log log({.max_waiting = 0}, Logger());
  log.Request(Record());
  log.Event(LogLevel::kError, "event", "");
  EXPECT_EQ(log.dropped_lines(), 2);
}

TEST(LogLevelTest, Names) {
  EXPECT_EQ(LogLevelFromName("debug"), LogLevel::kDebug);
  EXPECT_EQ(LogLevelFromName("error"), LogLevel::kError);
  EXPECT_EQ(LogLevelFromName("off"), LogLevel::kOff);
}

}  // namespace
}  // namespace tensord::server
