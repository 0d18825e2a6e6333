// `tensordctl bench` against a server that returns its requests, or follows a test's orders.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "clients/cli/bench/bench_report.h"
#include "clients/cli/files/file.h"
#include "clients/cli/files/npy.h"
#include "clients/load/call.h"
#include "clients/load/load_result.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/testlib/peers/tensordctl_call.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;

class BenchTest : public ::testing::Test {
 protected:
  Outcome Bench(std::vector<std::string> words) {
    words.insert(words.begin(), {"bench", "--target=" + server_.target()});
    return CallTensordctl(words);
  }

  // The only run of a bench with --json.
  Fields Run(std::vector<std::string> words, int status = kExitOk) {
    words.insert(words.end(), {"--json", "--warmup=0s"});
    const Outcome outcome = Bench(words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    google::protobuf::Struct json;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.out, &json).ok()) << outcome.out;
    EXPECT_EQ(Field(json.fields(), "runs").list_value().values_size(), 1) << outcome.out << outcome.err;
    return First(json.fields(), "runs");
  }

  // Returns null if there is none.
  static const google::protobuf::Value& Field(const Fields& fields, const char* name) {
    const auto found = fields.find(name);
    if (found != fields.end()) return found->second;
    ADD_FAILURE() << "no field " << name;
    return google::protobuf::Value::default_instance();
  }
  // The first of a list of objects.
  static const Fields& First(const Fields& fields, const char* name) {
    const auto& list = Field(fields, name).list_value();
    if (list.values_size() > 0) return list.values(0).struct_value().fields();
    ADD_FAILURE() << "an empty list: " << name;
    return google::protobuf::Struct::default_instance().fields();
  }
  static double Number(const Fields& fields, const char* name) { return Field(fields, name).number_value(); }
  static std::string Text(const Fields& fields, const char* name) { return Field(fields, name).string_value(); }
  static double Time(const Fields& fields, const char* kind, const char* name) {
    return Number(Field(fields, kind).struct_value().fields(), name);
  }
  static const Fields& Failure(const Fields& fields) { return First(fields, "failures"); }

  // A server that works until the client gives up.
  void WaitForCancellation() {
    server_.refuse_execute = [](const auto&, const grpc::ServerContext& context) {
      while (!context.IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return grpc::Status(grpc::StatusCode::CANCELLED, "as you wish");
    };
  }
  static grpc::Status QueueFull() {
    v1::ErrorDetail detail;
    detail.set_reason("QUEUE_FULL");
    detail.set_node(std::string(90, 'n'));  // so that the message is as long as Refusal needs it
    return client::FakeServer::Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", detail);
  }

  client::FakeServer server_;
};

TEST_F(BenchTest, ClosedLoopHasSoManyCallsUnderWay) {
  std::mutex mutex;
  std::condition_variable changed;
  int now = 0;
  int most = 0;
  server_.refuse_execute = [&](const auto&, const auto&) {
    std::unique_lock<std::mutex> lock(mutex);
    most = std::max(most, ++now);
    changed.notify_all();
    // The first ones wait for the others, for as long as no working client needs.
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return most >= 4; }));
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
    --now;
    return grpc::Status::OK;
  };
  const Fields run = Run({"--concurrency=4", "--connections=2", "--duration=300ms"});
  EXPECT_EQ(most, 4);
  EXPECT_EQ(Text(run, "loop"), "closed");
  EXPECT_GT(Number(run, "ok"), 0);
  EXPECT_EQ(Number(run, "refused") + Number(run, "failed") + Number(run, "unfinished"), 0);
  EXPECT_GE(Time(run, "latency_ms", "p50"), 1.0);
  // The server says 1.5 ms, which is more than it takes, so that nothing is left.
  EXPECT_NEAR(Time(run, "run_ms", "p50"), 1.5, 0.015);
  EXPECT_EQ(Time(run, "queue_ms", "max"), 0);
  EXPECT_GT(Number(run, "goodput"), 0);
}

TEST_F(BenchTest, OpenLoopCountsFromWhenACallWasDue) {
  // One call at a time, 40 ms each, while one is due every 5 ms.
  server_.refuse_execute = [](const auto&, const auto&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return grpc::Status::OK;
  };
  const Fields run = Run({"--rate=200", "--arrivals=fixed", "--max-outstanding=1", "--duration=400ms"});
  EXPECT_EQ(Text(run, "loop"), "open");
  EXPECT_GE(Number(run, "ok"), 2);
  // The second call was due after 5 ms, and answered after 80 at the earliest.
  EXPECT_GE(Time(run, "latency_ms", "max"), 75);
  EXPECT_GE(Time(run, "unsent_ms", "max"), 35);
  EXPECT_EQ(Number(run, "ok") + Number(run, "never_sent"), 80);
}

TEST_F(BenchTest, OpenLoopSendsOnTimeWhateverBecomesOfTheCalls) {
  WaitForCancellation();
  const Fields run = Run({"--rate=100", "--arrivals=fixed", "--duration=200ms", "--deadline=50ms"}, kExitFailed);
  EXPECT_EQ(Number(run, "failed"), 20);
  EXPECT_EQ(Number(run, "never_sent"), 0);
  EXPECT_EQ(Text(Failure(run), "code"), "DEADLINE_EXCEEDED");
  EXPECT_EQ(Number(Failure(run), "count"), 20);
}

TEST_F(BenchTest, RefusalsAreCountedByReasonAndNotAsLatency) {
  std::atomic<int> calls = 0;
  server_.refuse_execute = [&](const auto&, const auto&) { return ++calls % 2 == 0 ? QueueFull() : grpc::Status::OK; };
  const Fields run = Run({"--concurrency=2", "--duration=100ms", "--max-refusal-p99=1h"});
  EXPECT_GT(Number(run, "ok"), 0);
  EXPECT_GT(Number(run, "refused"), 0);
  EXPECT_EQ(Number(run, "failed"), 0);
  EXPECT_EQ(Text(Failure(run), "code"), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(Text(Failure(run), "reason"), "QUEUE_FULL");
  EXPECT_EQ(Number(Failure(run), "count"), Number(run, "refused"));
  EXPECT_GT(Time(run, "refusals_ms", "max"), 0);
  const Outcome missed = Bench({"--duration=50ms", "--warmup=0s", "--concurrency=2", "--max-refusal-p99=1ns"});
  EXPECT_EQ(missed.status, kExitFailed);
  EXPECT_THAT(missed.err, HasSubstr("the p99 of refusals is "));
  EXPECT_THAT(missed.out, HasSubstr(" x RESOURCE_EXHAUSTED QUEUE_FULL\n"));
}

TEST_F(BenchTest, CallsAreCancelledAndConnectionsCut) {
  WaitForCancellation();
  const Fields cancelled = Run({"--concurrency=3", "--cancel-percent=100", "--duration=100ms"}, kExitFailed);
  EXPECT_GT(Number(cancelled, "cancelled"), 0);
  EXPECT_EQ(Number(cancelled, "failed"), 0);
  const Fields cut = Run({"--concurrency=3", "--disconnect-percent=100", "--duration=100ms"}, kExitFailed);
  EXPECT_GT(Number(cut, "disconnected"), 0);
  EXPECT_EQ(Number(cut, "failed") + Number(cut, "failed_dials"), 0);
}

TEST_F(BenchTest, MixesFollowTheirWeights) {
  const Fields run = Run({"--workload=tiny*3,download:1Ki*1", "--concurrency=4", "--duration=300ms"});
  const auto& workloads = Field(run, "workloads").list_value();
  ASSERT_EQ(workloads.values_size(), 2);
  const double tiny = Number(workloads.values(0).struct_value().fields(), "ok");
  const double download = Number(workloads.values(1).struct_value().fields(), "ok");
  EXPECT_EQ(tiny + download, Number(run, "ok"));
  EXPECT_GT(tiny, download);
  EXPECT_GT(download, 0);
}

TEST_F(BenchTest, SweepsRunEachSizeDTypeAndConcurrency) {
  const Outcome outcome = Bench({"--workload=matmul", "--sizes=2,4", "--dtypes=f32,f64", "--concurrency=1,2",
                                 "--duration=20ms", "--warmup=0s", "--priority=3"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  for (const char* title : {"matmul:2 f32, closed loop of 1 on 1 connection\n", "matmul:2 f64, closed loop of 2",
                            "matmul:4 f32, closed loop of 2", "matmul:4 f64, closed loop of 1"}) {
    EXPECT_THAT(outcome.out, HasSubstr(title));
  }
  EXPECT_EQ(server_.execute_request.priority(), 3);
  EXPECT_THAT(outcome.out, Not(HasSubstr("unsent")));
}

TEST_F(BenchTest, RunsAGraphFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/bench-", getpid(), ".textproto");
  ASSERT_TRUE(WriteFile(path, R"(
      inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } }
      outputs { name: "y" value: "x" })")
                  .ok());
  const std::string workload = "--workload=" + path;
  const Outcome unknown = Bench({workload});
  EXPECT_EQ(unknown.status, kExitFailed);
  EXPECT_THAT(unknown.err, HasSubstr("symbol n"));
  EXPECT_GT(Number(Run({workload, "--symbol=n=7", "--duration=50ms"}), "ok"), 0);
  EXPECT_EQ(server_.execute_request.arguments(0).tensor().shape(0), 7);
  const std::string array = path + ".npy";
  ASSERT_TRUE(WriteNpy(array, client::HostTensor::Scalar(1.0f)).ok());
  for (const std::string slip : {"--symbol=m=7", "--input=X="}) {
    const Outcome misspelled = Bench({workload, "--symbol=n=7", slip + (slip.back() == '=' ? array : "")});
    EXPECT_EQ(misspelled.status, kExitUsage) << slip;
    EXPECT_THAT(misspelled.err, HasSubstr("no graph has ")) << slip;
  }
  EXPECT_EQ(Bench({"--symbol=n=7"}).status, kExitUsage) << "without a graph";
  std::remove(array.c_str());
  std::remove(path.c_str());
}

TEST_F(BenchTest, OverloadIsAMultipleOfThePeak) {
  std::atomic<int> now = 0;
  server_.refuse_execute = [&](const auto&, const auto&) {
    const bool is_full = ++now > 2;
    if (!is_full) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --now;
    return is_full ? QueueFull() : grpc::Status::OK;
  };
  const Fields run = Run({"--overload=4", "--concurrency=2", "--connections=2", "--duration=300ms"});
  EXPECT_EQ(Number(run, "peak_concurrency"), 2);
  EXPECT_NEAR(Number(run, "rate"), 4 * Number(run, "peak_goodput"), 1e-6);
  EXPECT_NEAR(Number(run, "goodput_ratio"), Number(run, "goodput") / Number(run, "peak_goodput"), 1e-9);
  const Outcome missed =
      Bench({"--overload=1", "--concurrency=2", "--duration=50ms", "--warmup=0s", "--min-goodput=1000"});
  EXPECT_EQ(missed.status, kExitFailed);
  EXPECT_THAT(missed.err, HasSubstr("of the peak, less than 1e+03"));
}

TEST_F(BenchTest, MissedGateIsItsExitStatus) {
  const Outcome missed = Bench({"--duration=50ms", "--warmup=0s", "--max-p99=1ns"});
  EXPECT_EQ(missed.status, kExitFailed);
  EXPECT_THAT(missed.err, HasSubstr("the p99 of latency is "));
  server_.refuse = [] { return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no"); };
  EXPECT_EQ(Bench({}).status, kExitFailed);
}

TEST_F(BenchTest, AFileGetsTheReportWithASummary) {
  const std::string path = testing::TempDir() + "/bench_report_" + std::to_string(getpid()) + ".json";
  const Outcome outcome = Bench({"--json=" + path, "--duration=50ms", "--warmup=0s", "--concurrency=1,2"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("closed loop of 2 on 1 connection")) << "the text is printed as ever";
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());
  google::protobuf::Struct json;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text, &json).ok()) << text;
  const auto& runs = Field(json.fields(), "runs").list_value();
  ASSERT_EQ(runs.values_size(), 2);
  const Fields& last = runs.values(1).struct_value().fields();
  for (const char* name : {"requests_per_second", "goodput_per_second", "p50_ms", "p99_ms", "errors"}) {
    EXPECT_EQ(Number(json.fields(), name), Number(last, name)) << name;
  }
  EXPECT_GT(Number(last, "goodput_per_second"), 0);
  EXPECT_GE(Number(last, "requests_per_second"), Number(last, "goodput_per_second"));
  EXPECT_EQ(Number(last, "p99_ms"), Time(last, "latency_ms", "p99"));
  EXPECT_EQ(Number(last, "errors"), 0);
  EXPECT_EQ(
      Number(json.fields(), "peak_per_second"),
      std::max(Number(runs.values(0).struct_value().fields(), "peak_per_second"), Number(last, "peak_per_second")));

  const Outcome nowhere = Bench({"--json=/does/not/exist/report.json", "--duration=1h"});
  EXPECT_EQ(nowhere.status, kExitFailed);
  EXPECT_THAT(nowhere.err, HasSubstr("cannot write /does/not/exist/report.json"));
}

TEST_F(BenchTest, FailureLeavesTheRunsBeforeIt) {
  server_.refuse = [&] {
    const v1::Graph& graph = server_.compile_request.graph();
    const bool is_second = graph.inputs_size() > 0 && graph.inputs(0).type().shape(0).size() == 4;
    return is_second ? grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no") : grpc::Status::OK;
  };
  const std::vector<std::string> words = {"--workload=matmul", "--sizes=2,4", "--duration=20ms", "--max-p99=1ns"};
  const Fields run = Run(words, kExitFailed);
  EXPECT_GT(Number(run, "ok"), 0);
  std::vector<std::string> quick = words;
  quick.push_back("--warmup=0s");
  const Outcome text = Bench(quick);
  EXPECT_EQ(text.status, kExitFailed);
  EXPECT_THAT(text.err, AllOf(HasSubstr("UNIMPLEMENTED: no"), HasSubstr("the p99 of latency is ")));
  quick.push_back("--json");
  EXPECT_THAT(Bench(quick).out, AllOf(HasSubstr("\"code\": \"UNIMPLEMENTED\""), HasSubstr("the p99 of latency is ")));
  // A workload that cannot be made is known before the first run.
  EXPECT_THAT(Bench({"--workload=matmul", "--sizes=2,1M"}).out, IsEmpty());
}

TEST_F(BenchTest, InterruptionPrintsWhatThereIs) {
  std::atomic<int> calls = 0;
  server_.refuse_execute = [&](const auto&, const auto&) {
    if (++calls == 20) kill(getpid(), SIGINT);
    return grpc::Status::OK;
  };
  const Outcome outcome = Bench({"--duration=1h", "--warmup=0s", "--concurrency=1,2,3"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.out, HasSubstr("closed loop of 1 on 1 connection (interrupted)\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("closed loop of 2")));
}

TEST_F(BenchTest, EndsWhenTheServerIsGone) {
  // Without a reason of the server's it is as if none had answered.
  std::atomic<int> calls = 0;
  server_.refuse_execute = [&](const auto&, const auto&) {
    return ++calls <= 5 ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  };
  for (const char* loop : {"--concurrency=1,2", "--rate=200"}) {
    calls = 0;
    const Outcome outcome = Bench({loop, "--duration=1h", "--warmup=0s", "--give-up=100ms"});
    EXPECT_EQ(outcome.status, kExitFailed);
    EXPECT_THAT(outcome.out, AllOf(HasSubstr(" (the server is gone)\n"), HasSubstr("  ok 5, ")));
    EXPECT_THAT(outcome.err, HasSubstr("UNAVAILABLE: no call has reached the server for 100ms: "));
    EXPECT_THAT(outcome.out, Not(HasSubstr("closed loop of 2"))) << "and no other run begins";
  }
  const Fields run = Run({"--duration=300ms", "--give-up=0s"}, kExitFailed);
  EXPECT_GE(Number(run, "seconds"), 0.3) << "which is never";
  calls = 5;
  const Outcome overload = Bench({"--overload=2", "--duration=1h", "--warmup=0s", "--give-up=50ms"});
  EXPECT_EQ(overload.status, kExitFailed);
  EXPECT_THAT(overload.err, HasSubstr("the server is gone before the peak was known"));
}

TEST_F(BenchTest, CallsThatAreDueAtAnInterruptionWereNeverSent) {
  std::atomic<bool> was_interrupted = false;
  server_.refuse_execute = [&](const auto&, const grpc::ServerContext& context) {
    // The only call that may be under way, while others are due.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!was_interrupted.exchange(true)) kill(getpid(), SIGINT);
    while (!context.IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return grpc::Status(grpc::StatusCode::CANCELLED, "as you wish");
  };
  const Fields run = Run({"--rate=1000", "--arrivals=fixed", "--max-outstanding=1", "--duration=1h"}, kExitFailed);
  EXPECT_EQ(Number(run, "unfinished"), 1);
  // A call is due every millisecond, the first at once.
  EXPECT_GE(Number(run, "never_sent"), 98);
}

TEST_F(BenchTest, MistakesAreUsage) {
  for (const char* bad : {"--concurrency=0",   "--concurrency=1,x", "--rate=0",
                          "--rate=-1",         "--duration=0s",     "--duration=soon",
                          "--arrivals=random", "--connections=0",   "--cancel-percent=101",
                          "--workload=",       "--workload=tiny*0", "--sizes=4",
                          "--sizes=x",         "--dtypes=f31",      "--min-goodput=0.9",
                          "--symbol=n",        "--input=x",         "--overload=0",
                          "--priority=high",   "--max-p99=fast",    "graph.json"}) {
    EXPECT_EQ(Bench({bad}).status, kExitUsage) << bad;
  }
  EXPECT_EQ(Bench({"--rate=1", "--concurrency=1"}).status, kExitUsage);
  EXPECT_EQ(Bench({"--rate=1", "--overload=2"}).status, kExitUsage);
  EXPECT_EQ(Bench({"--cancel-percent=60", "--disconnect-percent=60"}).status, kExitUsage);
  EXPECT_EQ(Bench({"--workload=a.json", "--dtypes=f64"}).status, kExitUsage);
  EXPECT_EQ(Bench({"--workload=/nowhere.json"}).status, kExitFailed);
}

// A run in which `ok` calls took a millisecond, and some a second.
BenchRun RunOf(int ok, int slow) {
  load::WorkloadResult workload = {.name = "tiny f32"};
  for (int i = 0; i < ok; ++i) workload.CountOk(absl::Milliseconds(1), absl::ZeroDuration(), {});
  for (int i = 0; i < slow; ++i) workload.CountOk(absl::Seconds(1), absl::ZeroDuration(), {});
  BenchRun run = {.workload = "tiny f32", .rate = 100};
  run.result.workloads.push_back(std::move(workload));
  return run;
}

TEST(BenchReport, GateOfLatencyIsMissedPastOneCallOfAHundred) {
  const BenchGates gates = {.largest_p99 = absl::Milliseconds(2)};
  EXPECT_THAT(MissedGates(RunOf(99, 1), gates), IsEmpty());
  EXPECT_THAT(MissedGates(RunOf(98, 2), gates), ElementsAre(HasSubstr("the p99 of latency is 1s, more than 2ms: ")));
}

TEST(BenchReport, CallsThatAreNotAnsweredTakeLongerThanAnyLimit) {
  const BenchGates gates = {.largest_p99 = absl::Hours(1)};
  const auto with = [](int ok, const auto& change) {
    BenchRun run = RunOf(ok, 0);
    change(run.result);
    return run;
  };
  const auto hang = [](load::LoadResult& result) { result.workloads[0].unfinished = 2; };
  EXPECT_THAT(MissedGates(with(98, hang), gates), ElementsAre(HasSubstr("2 of 100 calls failed, did not end")));
  EXPECT_THAT(MissedGates(with(198, hang), gates), IsEmpty());
  const auto stall = [](load::LoadResult& result) { result.never_sent = 2; };
  EXPECT_THAT(MissedGates(with(98, stall), gates), SizeIs(1));
  const auto fail = [](load::LoadResult& result) {
    for (int i = 0; i < 2; ++i) {
      result.workloads[0].CountFailure(absl::StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED", absl::Seconds(1));
    }
  };
  EXPECT_THAT(MissedGates(with(98, fail), gates), SizeIs(1));
  const auto refuse = [](load::LoadResult& result) {
    for (int i = 0; i < 50; ++i) {
      result.workloads[0].CountFailure(absl::StatusCode::kResourceExhausted, "QUEUE_FULL", absl::Seconds(1));
    }
    result.workloads[0].cancelled = result.workloads[0].disconnected = 50;
  };
  EXPECT_THAT(MissedGates(with(98, refuse), gates), IsEmpty());
  // One that fails and one that is slow are two of a hundred.
  BenchRun both = RunOf(98, 1);
  both.result.never_sent = 1;
  EXPECT_THAT(MissedGates(both, {.largest_p99 = absl::Milliseconds(2)}), ElementsAre(HasSubstr("is 1s, more than")));
}

TEST(BenchReport, GateOfRefusalsIsMissedOrKept) {
  BenchRun run = RunOf(1, 0);
  const BenchGates gates = {.largest_refusal_p99 = absl::Milliseconds(2)};
  EXPECT_THAT(MissedGates(run, gates), IsEmpty());
  run.result.workloads[0].CountFailure(absl::StatusCode::kResourceExhausted, "QUEUE_FULL", absl::Seconds(1));
  EXPECT_THAT(MissedGates(run, gates), ElementsAre(HasSubstr("the p99 of refusals is 1s, more than 2ms: ")));
}

TEST(BenchReport, ProgressTellsFiguresFirst) {
  const load::LoadProgress progress = {
      .passed = absl::Milliseconds(3400), .whole = absl::Seconds(11), .ok = 12345, .not_ok = 6};
  EXPECT_EQ(ProgressText(progress, "tiny f32"), "3s of 11s, 12.3k ok, 6 not: tiny f32");
}

TEST(LoadCalls, CutConnectionIsNoServerThatIsGone) {
  using End = load::Call::Outcome::End;
  const load::Call::Outcome cut = {.end = End::kDisconnected, .code = absl::StatusCode::kUnavailable};
  EXPECT_FALSE(cut.is_unreachable());
  const load::Call::Outcome gone = {.end = End::kFailed, .code = absl::StatusCode::kUnavailable};
  EXPECT_TRUE(gone.is_unreachable());
  const load::Call::Outcome drains = {
      .end = End::kFailed, .code = absl::StatusCode::kUnavailable, .reason = "DRAINING"};
  EXPECT_FALSE(drains.is_unreachable());
}

TEST(LoadResults, KeepABoundedNumberOfFailures) {
  load::WorkloadResult result;
  for (int i = 0; i < 1000; ++i) {
    result.CountFailure(absl::StatusCode::kInternal, absl::StrCat("REASON_", i), absl::Milliseconds(1));
  }
  EXPECT_LE(result.failures.size(), 65u);
  EXPECT_EQ(result.failed(), 1000);
  EXPECT_TRUE(load::IsRefusal(absl::StatusCode::kDeadlineExceeded, "DEADLINE_UNREACHABLE"));
  EXPECT_FALSE(load::IsRefusal(absl::StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED"));
  EXPECT_FALSE(load::IsRefusal(absl::StatusCode::kUnavailable, ""));
}

}  // namespace
}  // namespace tensord::cli
