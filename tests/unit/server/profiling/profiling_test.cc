#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/profiling/cpu_profile.h"
#include "server/profiling/executable_map.h"
#include "server/profiling/profiler.h"
#include "server/profiling/stack_sampler.h"

namespace tensord::server {

// Found by its name in the profile, so neither inlined nor static.
__attribute__((noinline)) double BurnTheProcessor(const std::atomic<bool>& stop) {
  double sum = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    for (int i = 1; i < 2000; ++i) sum += 1.0 / i;
  }
  return sum;
}

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A thread that works until the object goes.
class BusyThread {
 public:
  BusyThread() : thread_([this] { sum_ = BurnTheProcessor(stop_); }) {}
  ~BusyThread() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<double> sum_{0};
  std::thread thread_;
};

TEST(CodeRangesTest, ReadsWhatTheKernelWrites) {
  const std::vector<CodeRange> ranges = ParseCodeRanges(
      "55d0-55f0 r--p 00000000 08:01 1   /usr/bin/a\n"
      "7f00-7f80 r-xp 00002000 08:01 123                        /usr/lib/with a space.so\n"
      "6000-6100 rwxp 00000000 00:00 0 \n"
      "no line of that kind\n"
      "zz-7f r-xp 0 0 0\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].begin, 0x6000u) << "by address";
  EXPECT_EQ(ranges[0].file, "");
  EXPECT_EQ(ranges[1].file, "/usr/lib/with a space.so");
  EXPECT_EQ(ranges[1].file_offset, 0x2000u);
  EXPECT_EQ(ranges[2].file, "[vsyscall]");
  EXPECT_EQ(FindCode(ranges, 0x5fff), nullptr);
  EXPECT_EQ(FindCode(ranges, 0x6000), &ranges[0]);
  EXPECT_EQ(FindCode(ranges, 0x60ff), &ranges[0]);
  EXPECT_EQ(FindCode(ranges, 0x6100), nullptr);
  EXPECT_EQ(FindCode(ranges, 0x7f10), &ranges[1]);
  EXPECT_EQ(FindCode({}, 1), nullptr);
}

TEST(StackSamplerTest, IsAloneInTheProcess) {
  std::unique_ptr<StackSampler> first = StackSampler::Start(100);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(StackSampler::Start(100), nullptr);
  first.reset();
  std::unique_ptr<StackSampler> second = StackSampler::Start(100);
  ASSERT_NE(second, nullptr);
  second->Stop();
  EXPECT_NE(StackSampler::Start(100), nullptr) << "after Stop, though the object is still there";
}

// A late signal does no harm: its usual effect is to end the process.
TEST(StackSamplerTest, ASignalAfterTheEndDoesNothing) {
  StackSampler::Start(1000)->Stop();
  for (int i = 0; i < 100; ++i) raise(SIGPROF);
}

TEST(StackSamplerTest, StacksBeginWhereTheThreadWasInterrupted) {
  std::unique_ptr<StackSampler> sampler = StackSampler::Start(1);  // signals are ours
  for (int i = 0; i < 10; ++i) raise(SIGPROF);
  const StackSampler::Stacks stacks = sampler->Stop();
  EXPECT_GE(stacks.count, 10);
  EXPECT_EQ(stacks.dropped, 0);
  size_t at = 0;
  for (int64_t i = 0; i < stacks.count; ++i) {
    ASSERT_LT(at, stacks.words.size());
    EXPECT_GE(stacks.words[at], 1u);
    EXPECT_LE(stacks.words[at], StackSampler::kMaxDepth);
    at += stacks.words[at] + 1;
  }
  EXPECT_EQ(at, stacks.words.size());
  const auto profile = MakeCpuProfile(stacks, {.start = absl::Now(), .duration = absl::Seconds(1), .per_second = 1});
  std::set<std::string> names(profile.string_table().begin(), profile.string_table().end());
  for (const std::string& name : names) EXPECT_THAT(name, Not(HasSubstr("OnSignal"))) << "the sampler is no part of it";
  bool has_test = false;
  for (const std::string& name : names) has_test |= name.find("StacksBeginWhere") != std::string::npos;
  EXPECT_TRUE(has_test) << testing::PrintToString(names);
}

TEST(StackSamplerTest, WithoutRoomStacksAreDropped) {
  std::unique_ptr<StackSampler> sampler = StackSampler::Start(1, /*room=*/20);
  for (int i = 0; i < 100; ++i) raise(SIGPROF);
  const StackSampler::Stacks stacks = sampler->Stop();
  EXPECT_GE(stacks.dropped, 80);
  EXPECT_GE(stacks.count + stacks.dropped, 100);
  EXPECT_LE(stacks.words.size(), 20u);
}

// From many threads, while samplers come and go.
TEST(StackSamplerTest, StartsAndStopsUnderSignals) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  StackSampler::Start(1)->Stop();  // the handler is there
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&stop] {
      while (!stop) pthread_kill(pthread_self(), SIGPROF);
    });
  }
  int64_t count = 0;
  for (int i = 0; i < 50 || count == 0; ++i) {
    std::unique_ptr<StackSampler> sampler = StackSampler::Start(1000, /*room=*/10'000);
    ASSERT_NE(sampler, nullptr);
    std::this_thread::yield();
    if (i % 3 != 0) count += sampler->Stop().count;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

#if defined(__x86_64__)
// Code that was made in memory says nothing of its frames: its samples are there, and are told apart.
TEST(StackSamplerTest, MadeCodeIsSampled) {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  // mov eax, 50000000; dec eax; jnz back; ret
  const unsigned char code[] = {0xb8, 0x80, 0xf0, 0xfa, 0x02, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
  std::copy(std::begin(code), std::end(code), static_cast<unsigned char*>(page));
  ASSERT_EQ(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
  std::unique_ptr<StackSampler> sampler = StackSampler::Start(1000);
  const absl::Time until = absl::Now() + absl::Minutes(1);
  std::string names;
  while (names.find("[made code]") == std::string::npos && absl::Now() < until) {
    reinterpret_cast<void (*)()>(page)();
    const auto profile =
        MakeCpuProfile(sampler->Stop(), {.start = absl::Now(), .duration = absl::Seconds(1), .per_second = 1000});
    for (const std::string& name : profile.string_table()) names += name + " ";
    sampler = StackSampler::Start(1000);
    ASSERT_NE(sampler, nullptr);
  }
  EXPECT_THAT(names, HasSubstr("[made code]"));
  munmap(page, 4096);
}
#endif

TEST(CpuProfileTest, EverythingThatIsReferredToIsThere) {
  StackSampler::Stacks stacks;
  const auto here = reinterpret_cast<uintptr_t>(&BurnTheProcessor);
  stacks.words = {2, here, 17, 2, here, 17, 1, 99};
  stacks.count = 3;
  const absl::Time start = absl::FromUnixSeconds(1'000'000);
  const auto profile = MakeCpuProfile(stacks, {.start = start, .duration = absl::Seconds(2), .per_second = 100});
  EXPECT_EQ(profile.string_table(0), "");
  EXPECT_EQ(profile.period(), 10'000'000);
  EXPECT_EQ(profile.duration_nanos(), 2'000'000'000);
  EXPECT_EQ(profile.time_nanos(), 1'000'000'000'000'000);
  ASSERT_EQ(profile.sample_type_size(), 2);
  std::map<uint64_t, std::string> functions;
  for (const auto& function : profile.function()) {
    ASSERT_LT(function.name(), profile.string_table_size());
    functions[function.id()] = profile.string_table(static_cast<int>(function.name()));
  }
  std::map<uint64_t, std::string> locations;
  for (const auto& location : profile.location()) {
    ASSERT_EQ(location.line_size(), 1);
    ASSERT_EQ(functions.count(location.line(0).function_id()), 1u);
    EXPECT_LE(location.mapping_id(), static_cast<uint64_t>(profile.mapping_size()));
    locations[location.id()] = functions[location.line(0).function_id()];
  }
  std::multiset<std::string> samples;
  for (const auto& sample : profile.sample()) {
    std::string text;
    for (const uint64_t id : sample.location_id()) text += locations.at(id) + ";";
    ASSERT_EQ(sample.value_size(), 2);
    EXPECT_EQ(sample.value(1), sample.value(0) * profile.period());
    samples.insert(text + std::to_string(sample.value(0)));
  }
  EXPECT_EQ(samples,
            (std::multiset<std::string>{"[made code];1", "tensord::server::BurnTheProcessor();[made code];2"}));
}

TEST(ProfilerTest, FindsWhatIsBusy) {
  Profiler profiler;
  const BusyThread busy;
  std::string found;
  for (int attempt = 0; attempt < 100 && found.empty(); ++attempt) {
    std::mutex mutex;
    std::atomic<bool> is_done{false};
    Profiler::Result result;
    const absl::Status started =
        profiler.Start({.duration = absl::Milliseconds(300), .samples_per_second = 500}, [&](Profiler::Result got) {
          const std::lock_guard<std::mutex> lock(mutex);
          result = std::move(got);
          is_done = true;
        });
    ASSERT_TRUE(started.ok()) << started;
    while (!is_done) std::this_thread::yield();
    const std::lock_guard<std::mutex> lock(mutex);
    int64_t counted = 0;
    for (const auto& sample : result.profile.sample()) counted += sample.value(0);
    EXPECT_EQ(counted, result.samples);
    for (const std::string& text : result.profile.string_table()) {
      if (text.find("BurnTheProcessor") != std::string::npos) found = text;
    }
  }
  EXPECT_THAT(found, HasSubstr("BurnTheProcessor"));
}

TEST(ProfilerTest, RefusesMoreThanItsBounds) {
  Profiler profiler;
  const auto limit_of = [&](const Profiler::Request& request) {
    const absl::Status status = profiler.Start(request, [](const Profiler::Result&) { ADD_FAILURE(); });
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(limit_of({.duration = absl::Milliseconds(60'001)}), HasSubstr("milliseconds of a profile"));
  EXPECT_THAT(limit_of({.duration = absl::InfiniteDuration()}), HasSubstr("milliseconds of a profile"));
  EXPECT_THAT(limit_of({.samples_per_second = 1001}), HasSubstr("samples a second"));
  EXPECT_THAT(limit_of({.duration = absl::ZeroDuration()}), HasSubstr("some time"));
  EXPECT_THAT(limit_of({.duration = -absl::InfiniteDuration()}), HasSubstr("some time"));
  EXPECT_THAT(limit_of({.samples_per_second = -1}), HasSubstr("some time"));
}

TEST(ProfilerTest, OneAtATimeAndEndedEarly) {
  std::atomic<int> answered{0};
  const auto answer = [&](const Profiler::Result&) { ++answered; };
  auto cancel = std::make_shared<CancelToken>();
  {
    Profiler profiler;
    ASSERT_TRUE(profiler.Start({.duration = absl::Seconds(60), .cancel = cancel}, answer).ok());
    EXPECT_THAT(std::string(profiler.Start({}, answer).message()), HasSubstr("profiles at a time"));
    Profiler other;
    EXPECT_THAT(std::string(other.Start({}, answer).message()), HasSubstr("profiles at a time"))
        << "of the whole process";
    cancel->Cancel();
    while (answered == 0) std::this_thread::yield();
    // The first is over when it is answered.
    ASSERT_TRUE(profiler.Start({.duration = absl::Seconds(60)}, answer).ok());
    profiler.Stop();
    EXPECT_EQ(answered, 2);
    EXPECT_FALSE(profiler.Start({}, answer).ok()) << "it has stopped";
  }
  {
    Profiler profiler;
    ASSERT_TRUE(profiler.Start({.duration = absl::Seconds(60)}, answer).ok());
  }
  EXPECT_EQ(answered, 3) << "the destructor waits for the answer";
}

}  // namespace
}  // namespace tensord::server
