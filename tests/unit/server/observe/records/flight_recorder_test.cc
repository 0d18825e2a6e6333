#include "server/observe/records/flight_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/server_config.pb.h"
#include "server/observe/logs/log.h"
#include "server/observe/records/crash_line.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RequestRecord Call(const std::string& id, absl::StatusCode code = absl::StatusCode::kOk) {
  RequestRecord record;
  record.request_id = id;
  record.code = code;
  record.total = absl::Microseconds(5);
  return record;
}

std::vector<std::string> Ids(const FlightRecorder::Dump& dump) {
  std::vector<std::string> ids;
  for (const FlightEntry& entry : dump.entries) ids.emplace_back(entry.text.view());
  return ids;
}

// Returns the text written to a file.
template <typename Write>
std::string Written(Write&& write) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), &std::fclose);
  write(fileno(file.get()));
  std::string text(1 << 16, '\0');
  std::rewind(file.get());
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

// Returns the bytes of memory that the process has touched.
int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Returns the most that the setting flight_recorder.entries may be.
int64_t MostEntries() {
  const auto& setting = *ServerConfig::FlightRecorder::descriptor()->FindFieldByName("entries");
  return setting.options().GetExtension(most);
}

TEST(FlightRecorderTest, PlacesTakeNoMemoryBeforeTheirUse) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the shadow of ThreadSanitizer is resident memory too";
#endif
  const int64_t before = ResidentBytes();
  ASSERT_GT(before, 0);
  FlightRecorder recorder({.entries = MostEntries()});
  const int64_t made = ResidentBytes();
  EXPECT_LT(made - before, MostEntries() * int64_t{sizeof(FlightEntry)} / 4);
  for (int i = 0; i < 3; ++i) recorder.Request(Call(std::to_string(i)));
  EXPECT_THAT(Ids(recorder.Read(100, false)), ElementsAre("0", "1", "2"));
}

TEST(FlightRecorderTest, AllThatMayBeAskedForFitsAServer) {
  EXPECT_LE(MostEntries() * int64_t{sizeof(FlightEntry)}, int64_t{128} << 20);
}

TEST(FlightRecorderTest, KeepsTheLastOnes) {
  FlightRecorder recorder({.entries = 4});
  for (int i = 0; i < 10; ++i) recorder.Request(Call(std::to_string(i)));
  EXPECT_THAT(Ids(recorder.Read(100, false)), ElementsAre("6", "7", "8", "9"));
  EXPECT_THAT(Ids(recorder.Read(2, false)), ElementsAre("8", "9"));
  EXPECT_EQ(recorder.Read(100, false).lost, 0);
}

TEST(FlightRecorderTest, WhatGoesWellDoesNotPushOutWhatDoesNot) {
  FlightRecorder recorder({.entries = 8, .slow = absl::Seconds(1)});
  recorder.Request(Call("refused", absl::StatusCode::kInvalidArgument));
  RequestRecord slow = Call("slow");
  slow.total = absl::Seconds(1);
  recorder.Request(slow);
  for (int i = 0; i < 100; ++i) recorder.Request(Call("quick"));
  EXPECT_THAT(Ids(recorder.Read(100, true)), ElementsAre("refused", "slow"));
  EXPECT_EQ(recorder.Read(100, false).entries.size(), 10u);
  recorder.Event("draining", "no more");
  EXPECT_THAT(Ids(recorder.Read(100, true)), ElementsAre("slow", "draining\nno more"));
}

TEST(FlightRecorderTest, KeepsWhatTheLogLeavesOut) {
  FlightRecorder recorder({});
  Log log({.level = LogLevel::kOff, .recorder = &recorder});
  log.Event(LogLevel::kInfo, "listening", "unix:/s", {{"peer", "p"}});
  log.Event(LogLevel::kDebug, "detail", "");
  EXPECT_THAT(Ids(recorder.Read(100, false)), ElementsAre("listening\nunix:/s peer=p"));
}

// An operator who watches a server makes calls all the time.
TEST(FlightRecorderTest, CallsOfOperatorsPushNoEventsOut) {
  FlightRecorder recorder({.entries = 8});
  Log log({.level = LogLevel::kOff, .recorder = &recorder});
  log.Event(LogLevel::kInfo, "listening", "unix:/s");
  log.Audit(LogLevel::kWarning, "access_refused", "no token", {});
  for (int i = 0; i < 100; ++i) log.Audit(LogLevel::kInfo, "operator_call", "", {});
  EXPECT_THAT(Ids(recorder.Read(100, true)), ElementsAre("listening\nunix:/s", "access_refused\nno token"));
}

TEST(FlightRecorderTest, CanBeOff) {
  FlightRecorder recorder({.entries = 0});
  recorder.Request(Call("a", absl::StatusCode::kInternal));
  recorder.Event("b", "");
  EXPECT_TRUE(recorder.Read(100, false).entries.empty());
}

TEST(FlightRecorderTest, ManyWritersLeaveWholeEntries) {
  FlightRecorder recorder({.entries = 16});
  constexpr int kWriters = 4, kCalls = 2000;
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&recorder, &writing, w] {
      for (int i = 0; i < kCalls; ++i) {
        RequestRecord record = Call(std::string(60, static_cast<char>('a' + w)));
        record.tenant = record.request_id.substr(0, 31);
        recorder.Request(record);
      }
      --writing;
    });
  }
  do {
    for (const FlightEntry& entry : recorder.Read(100, false).entries) {
      const std::string id(entry.text.view());
      ASSERT_EQ(id, std::string(60, id[0]));
      ASSERT_EQ(entry.tenant.view(), id.substr(0, 31));
    }
  } while (writing > 0);
  for (std::thread& writer : writers) writer.join();
  const FlightRecorder::Dump last = recorder.Read(100, false);
  EXPECT_LE(16 - static_cast<int64_t>(last.entries.size()), last.lost) << "what is not there was lost";
}

TEST(FlightRecorderTest, TheLastWordIsJsonLines) {
  FlightRecorder recorder({});
  RequestRecord record = Call("r-\"1\"", absl::StatusCode::kNotFound);
  record.reason = "X";
  record.tenant = "a";
  record.trace.context = *ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  const auto start = StageTimes::Clock::now();
  record.stages = StageTimes(start);
  record.stages.EndAt(Stage::kParse, start + std::chrono::microseconds(12));
  recorder.Request(record);
  recorder.Event("draining", "grüezi");
  const std::string text = Written([&](int descriptor) { recorder.WriteTo(descriptor); });
  EXPECT_THAT(text, HasSubstr(R"("level":"error","event":"flight","method":"Execute","code":5,"reason":"X",)"
                              R"("request_id":"r-\"1\"","trace_id":"0af7651916cd43dd8448eb211c80319c","tenant":"a")"));
  EXPECT_THAT(text, HasSubstr(R"("parse_us":12,"received_bytes":0,"sent_bytes":0,"total_us":5})"));
  EXPECT_THAT(text, HasSubstr(R"("message":"draining?gr??ezi"})"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(CrashLineTest, LeavesOutWhatDoesNotFit) {
  const std::string text = Written([](int descriptor) {
    CrashLine line;
    line.Add("number", std::numeric_limits<int64_t>::min());
    for (int i = 0; i < 100; ++i) line.Add("long", std::string(50, 'x'));
    line.Add("zero", 0);
    line.WriteTo(descriptor);
  });
  EXPECT_THAT(text, HasSubstr("{\"number\":-9223372036854775808,\"long\":\""));
  EXPECT_EQ(text.substr(text.size() - 2), "}\n");
  EXPECT_LE(text.size(), 2048u);
}

}  // namespace
}  // namespace tensord::server
