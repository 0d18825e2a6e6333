#include <prometheus/text_serializer.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <chrono>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observe/collected_metrics.h"
#include "server/observe/control_metrics.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/metrics_endpoint.h"
#include "server/observe/trace_metrics.h"

namespace tensord::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RequestRecord Record() {
  RequestRecord record;
  record.method = RpcMethod::kExecute;
  record.peer = "unix:";
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

// Nothing is declared that nobody exports, and nothing exported that is not declared.
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
  const ProgramCache cache({.max_bytes = 1}, &pool);
  Log log({.level = LogLevel::kOff});
  const CollectedMetrics collected(
      {.version = "1",
       .executors = &executors,
       .cache = &cache,
       .log = &log,
       .admission = [] { return CollectedMetrics::Admission{.ready = true}; },
       .fft_tables = [] { return CollectedMetrics::Tables{.bytes = 5, .hits = 3, .misses = 2}; },
       .resident =
           [] {
             return CollectedMetrics::Resident{.sessions = 2, .expired = 1, .devices = {{"cpu:0", {3, 400}}}};
           }});
  std::set<std::string> exported, declared;
  for (const auto& family : metrics.registry()->Collect()) exported.insert(family.name);
  for (const auto& family : collected.Collect()) exported.insert(family.name);
  for (const MetricInfo& info : AllMetrics()) declared.insert(std::string(info.name));
  EXPECT_EQ(exported, declared);
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_ready 1"));
  EXPECT_THAT(Text(collected.Collect()), HasSubstr("tensord_fft_table_lookups_total{result=\"hit\"} 3"));
}

TEST(MetricsEndpointTest, RefusesWhatIsNoAddress) {
  for (const char* wrong : {"", "80", ":80", "host:", "host:99999", "127.0.0.1:0,127.0.0.1:1", "host:-1"}) {
    EXPECT_EQ(MetricsEndpoint::Start(wrong, {}).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(MetricsEndpointTest, BindsAFreePortAndKeepsIt) {
  const auto first = MetricsEndpoint::Start("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT((*first)->address(), HasSubstr("127.0.0.1:"));
  EXPECT_THAT((*first)->address(), Not(HasSubstr(":0")));
  EXPECT_EQ(MetricsEndpoint::Start((*first)->address(), {}).status().code(), absl::StatusCode::kUnavailable);
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
