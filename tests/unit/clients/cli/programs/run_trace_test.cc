#include "clients/cli/programs/run_trace.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using google::protobuf::Struct;

// Two segments in a run of 400 us, which waited 100 us, in an execution that took 1,000 us.
RunReport Report() {
  RunReport report;
  report.calls = {{"connect", absl::ZeroDuration(), absl::Microseconds(50)},
                  {"compile", absl::Microseconds(60), absl::Microseconds(300)},
                  {"execute", absl::Microseconds(1000), absl::Microseconds(1000)}};
  report.compiled.set_source(v1::CompileResponse::SOURCE_COMPILED);
  report.compiled.mutable_compile_time()->set_nanos(200'000);
  v1::ExecutionStats& stats = report.stats;
  stats.set_device("cpu:0");
  stats.mutable_queue_time()->set_nanos(100'000);
  stats.mutable_run_time()->set_nanos(400'000);
  stats.set_peak_bytes(4096);
  for (int i = 0; i < 2; ++i) {
    v1::SegmentProfile* segment = stats.add_segments();
    segment->set_backend("cpu");
    segment->set_kernel("fused: add exp (f32[\"2\"]) -> f32[2]");
    segment->add_nodes("a");
    segment->add_nodes("b\"\\");
    segment->mutable_start()->set_nanos(i * 200'000 + 500);
    segment->mutable_duration()->set_nanos(150'000);
  }
  return report;
}

// Complete events by "process/thread/name", the last of each.
std::map<std::string, Struct> EventsOf(const RunReport& report) {
  const absl::StatusOr<std::string> json = TraceJson(report);
  EXPECT_TRUE(json.ok()) << json.status();
  Struct trace;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(*json, &trace).ok()) << *json;
  std::map<std::string, Struct> events;
  for (const auto& value : trace.fields().at("traceEvents").list_value().values()) {
    const Struct& event = value.struct_value();
    const auto number = [&](const char* key) { return static_cast<int>(event.fields().at(key).number_value()); };
    if (event.fields().at("ph").string_value() == "M") {
      EXPECT_EQ(event.fields().at("args").struct_value().fields().count("name"), 1u);
      continue;
    }
    EXPECT_EQ(event.fields().at("ph").string_value(), "X");
    EXPECT_GE(event.fields().at("ts").number_value(), 0);
    EXPECT_GE(event.fields().at("dur").number_value(), 0);
    events[absl::StrCat(number("pid"), "/", number("tid"), "/", event.fields().at("name").string_value())] = event;
  }
  return events;
}

double Number(const Struct& event, const char* key) { return event.fields().at(key).number_value(); }

TEST(RunTraceTest, ServerPhasesLieInTheMiddleOfTheirCall) {
  const std::map<std::string, Struct> events = EventsOf(Report());
  EXPECT_EQ(events.size(), 7u);
  EXPECT_EQ(Number(events.at("1/1/execute"), "ts"), 1000);
  EXPECT_EQ(Number(events.at("1/1/execute"), "dur"), 1000);
  EXPECT_EQ(Number(events.at("2/1/compile"), "ts"), 110);
  EXPECT_EQ(Number(events.at("2/1/queue"), "ts"), 1250);
  EXPECT_EQ(Number(events.at("2/1/run"), "ts"), 1350);
  EXPECT_EQ(Number(events.at("2/1/run"), "dur"), 400);
  const Struct& segment = events.at("2/2/fused: add exp");  // the second one
  EXPECT_EQ(Number(segment, "ts"), 1350 + 200.5);
  EXPECT_EQ(Number(segment, "dur"), 150);
  const auto& arguments = segment.fields().at("args").struct_value().fields();
  EXPECT_EQ(arguments.at("backend").string_value(), "cpu");
  EXPECT_EQ(arguments.at("nodes").list_value().values(1).string_value(), "b\"\\");
}

TEST(RunTraceTest, AServerThatSaysMoreThanItsCallTookStartsWithIt) {
  RunReport report = Report();
  report.stats.mutable_run_time()->set_seconds(5);
  report.compiled.set_source(v1::CompileResponse::SOURCE_MEMORY);
  const std::map<std::string, Struct> events = EventsOf(report);
  EXPECT_EQ(Number(events.at("2/1/queue"), "ts"), 1000);
  EXPECT_EQ(events.count("2/1/compile"), 0u);
}

TEST(RunTraceTest, AGraphThatWasSentAgainIsCompiledInItsExecution) {
  RunReport report = Report();
  report.stats.mutable_compile_time()->set_nanos(300'000);
  const std::map<std::string, Struct> events = EventsOf(report);
  EXPECT_EQ(Number(events.at("2/1/compile"), "ts"), 1100);
  EXPECT_EQ(Number(events.at("2/1/queue"), "ts"), 1400);
  EXPECT_EQ(Number(events.at("2/1/run"), "ts"), 1500);
}

}  // namespace
}  // namespace tensord::cli
