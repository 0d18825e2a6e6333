// Waits and deadlines while somebody sets the system's clock: a test binary of its own, whose clock that is.

#include <prometheus/registry.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/shared_memory/broker_connection.h"
#include "engine/base/descriptor.h"
#include "engine/base/refusal.h"
#include "engine/base/steady_time.h"
#include "engine/runtime/programs/program_cache.h"
#include "gtest/gtest.h"
#include "server/admission/rate_limiter.h"
#include "server/lifecycle/alarms.h"
#include "server/lifecycle/call_gate.h"
#include "server/lifecycle/stall_alarm.h"
#include "server/observe/metrics/trace_metrics.h"
#include "server/tracing/otlp_exporter.h"

namespace {

std::atomic<int64_t> set_by_seconds{0};

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += set_by_seconds.load();
  return result;
}

namespace tensord::server {
namespace {

class SetClockTest : public testing::TestWithParam<int64_t> {
 protected:
  SetClockTest() { SteadyNow(); }
  ~SetClockTest() override { set_by_seconds = 0; }
  // Gives up after a minute.
  static bool WaitFor(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return condition();
  }
  // Abseil may look at the system's clock every two seconds only.
  static void SetClock() {
    const absl::Time before = absl::Now();
    set_by_seconds += GetParam();
    EXPECT_TRUE(WaitFor([before] { return absl::AbsDuration(absl::Now() - before) > absl::Minutes(59); }));
  }
};

TEST_P(SetClockTest, TimesOfDayThatComeFromOutsideAreAsFarAwayAsTheyAre) {
  const absl::Time wall = absl::Now(), steady = SteadyNow();
  SetClock();
  EXPECT_GE(absl::AbsDuration(absl::Now() - wall), absl::Minutes(59));
  EXPECT_GE(SteadyNow(), steady);
  EXPECT_LE(SteadyNow(), steady + absl::Minutes(1));
  const absl::Duration away = SteadyTimeOf(absl::Now() + absl::Minutes(5)) - SteadyNow();
  EXPECT_GE(away, absl::Minutes(4));
  EXPECT_LE(away, absl::Minutes(5) + absl::Seconds(1));
  EXPECT_EQ(SteadyTimeOf(absl::InfiniteFuture()), absl::InfiniteFuture());
  EXPECT_EQ(ToSteadyClock(absl::InfiniteFuture()), std::chrono::steady_clock::time_point::max());
}

TEST_P(SetClockTest, AlarmsRingWhenTheyAreDue) {
  Alarms alarms;
  std::atomic<bool> rang{false}, late_rang{false};
  alarms.Set(SteadyNow() + absl::Minutes(30), [&late_rang] { late_rang = true; });
  SetClock();
  alarms.Set(SteadyNow() + absl::Milliseconds(20), [&rang] { rang = true; });
  EXPECT_TRUE(WaitFor([&rang] { return rang.load(); }));
  EXPECT_FALSE(late_rang);
}

TEST_P(SetClockTest, WhatGoesOnIsNoStall) {
  Alarms alarms;
  std::atomic<int> rings{0};
  const auto stall = std::make_shared<StallAlarm>(&alarms, absl::Minutes(30), [&rings] { ++rings; });
  stall->Progress();
  SetClock();
  const auto soon = std::make_shared<StallAlarm>(&alarms, absl::Milliseconds(20), [&rings] { ++rings; });
  soon->Progress();
  EXPECT_TRUE(WaitFor([&rings] { return rings > 0; }));
  EXPECT_TRUE(soon->End());
  EXPECT_FALSE(stall->End());
}

TEST_P(SetClockTest, ADrainEndsInItsTime) {
  CallGate gate(1 << 20);
  gate.MoveTo(ServingState::kWarming);
  gate.MoveTo(ServingState::kServing);
  ASSERT_TRUE(gate.Enter(1, "a").ok());
  std::atomic<bool> asked{false};
  const absl::Time until = SteadyNow() + absl::Seconds(3);
  EXPECT_FALSE(gate.WaitUntilEmpty(until, [&asked] {
    if (!asked.exchange(true)) SetClock();
    return false;
  })) << "and it returns";
  gate.Leave(1, "a");
}

TEST_P(SetClockTest, ATenantsRateIsThatOfTheClockOnTheWall) {
  RateLimiter rates({.per_second = 1, .burst = 1000});
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(rates.Admit("a", SteadyNow()).ok());
  const absl::Time before = SteadyNow();
  SetClock();
  int admitted = 0;
  while (rates.Admit("a", SteadyNow()).ok()) ++admitted;
  EXPECT_LE(admitted, absl::ToInt64Seconds(SteadyNow() - before) + 1) << "an hour that nobody waited fills nothing";
}

// Refuses each time that it is asked to compile; how often it was until `enough` holds for that number.
int CompilationsOf(ProgramCache* cache, const std::function<bool(int)>& enough) {
  std::atomic<int> compilations{0};
  const auto compile = [&compilations]() -> absl::StatusOr<CompiledProgramPtr> {
    ++compilations;
    return Refuse(Refusal::kShapeMismatch, "sizes differ");
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  do {
    std::promise<void> done;
    cache->GetOrCompile({.fingerprint = Fingerprint::Of("a"), .bytes = "a"}, compile,
                        [&done](const absl::StatusOr<ProgramCache::Found>&) { done.set_value(); });
    done.get_future().wait();
  } while (!enough(compilations) && std::chrono::steady_clock::now() < end);
  return compilations;
}

TEST_P(SetClockTest, WhatWasRefusedIsRefusedForItsTime) {
  CompilePool pool(1, 10);
  ProgramCache lasting({.max_bytes = 1 << 20, .refused = {.keep = absl::Minutes(10)}}, &pool);
  ProgramCache passing({.max_bytes = 1 << 20, .refused = {.keep = absl::Milliseconds(20)}}, &pool);
  const auto once = [](int) { return true; };
  EXPECT_EQ(CompilationsOf(&lasting, once), 1);
  EXPECT_EQ(CompilationsOf(&passing, once), 1);
  SetClock();
  EXPECT_EQ(CompilationsOf(&lasting, once), 0) << "an hour that nobody waited";
  EXPECT_EQ(CompilationsOf(&passing, [](int compilations) { return compilations > 0; }), 1) << "and not for an hour";
}

TEST_P(SetClockTest, TheLastSpansHaveTheirTimeAndNoMore) {
  Log log({.level = LogLevel::kOff});
  prometheus::Registry registry;
  TraceMetrics metrics(registry);
  SpanQueue queue(1000);
  OtlpExporter exporter({.target = "127.0.0.1:1",
                         .credentials = grpc::InsecureChannelCredentials(),
                         .batch_wait = absl::Milliseconds(1),
                         .retry = absl::Minutes(3)},
                        &queue, &metrics, &log);
  queue.Push(MakeTracedRequest(RequestRecord(), 64, absl::Now()));
  SetClock();
  const absl::Time start = SteadyNow();
  exporter.Finish(start + absl::Milliseconds(200));
  EXPECT_LE(SteadyNow() - start, absl::Minutes(1));
}

TEST_P(SetClockTest, AClientsDeadlinesAreAsFarAwayAsTheyWere) {
  const absl::Time steady = client::SteadyNow();
  SetClock();
  EXPECT_LE(absl::AbsDuration(client::SteadyNow() - steady), absl::Minutes(1));
  const absl::Time given = absl::Now() + absl::Minutes(5);
  EXPECT_LE(absl::AbsDuration(client::SteadyTimeOf(given) - client::SteadyNow() - absl::Minutes(5)), absl::Minutes(1));
  EXPECT_LE(absl::AbsDuration(client::TimeOfDay(client::SteadyTimeOf(given)) - given), absl::Minutes(1));
  const gpr_timespec far = client::ToGrpcDeadline(client::SteadyNow() + absl::Minutes(5));
  const double seconds = gpr_timespec_to_micros(gpr_time_sub(far, gpr_now(far.clock_type))) / 1e6;
  EXPECT_NEAR(seconds, 300, 60);
  EXPECT_EQ(client::ToGrpcDeadline(absl::InfiniteFuture()).tv_sec, gpr_inf_future(GPR_CLOCK_MONOTONIC).tv_sec);
}

TEST_P(SetClockTest, AClientWaitsForSharedMemoryAsLongAsItWould) {
  std::string folder = testing::TempDir() + "/set_clock_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/broker";
  const Descriptor server(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(server.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(server.number(), 1), 0);
  const auto connection = client::BrokerConnection::Connect(path, "", absl::Now() + absl::Minutes(1));
  ASSERT_TRUE(connection.ok()) << connection.status();
  const Descriptor accepted(accept(server.number(), nullptr, nullptr));

  std::atomic<bool> over{false};
  std::thread asker([&] {
    EXPECT_TRUE(absl::IsDeadlineExceeded((*connection)->Allocate(100, absl::Now() + absl::Seconds(4)).status()));
    over = true;
  });
  char byte;
  EXPECT_GT(recv(accepted.number(), &byte, 1, 0), 0) << "it has asked, and nobody answers";
  SetClock();
  EXPECT_TRUE(WaitFor([&over] { return over.load(); }));
  shutdown(accepted.number(), SHUT_RDWR);  // should it wait still
  asker.join();
  unlink(path.c_str());
  rmdir(folder.c_str());
}

INSTANTIATE_TEST_SUITE_P(ByAnHour, SetClockTest, testing::Values(-3600, 3600));

}  // namespace
}  // namespace tensord::server
