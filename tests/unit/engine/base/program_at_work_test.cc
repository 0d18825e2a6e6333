#include "engine/base/program_at_work.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/alternate_stack.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const Fingerprint kA = Fingerprint::Of("a"), kB = Fingerprint::Of("b");

std::vector<std::string> AllAtWork() {
  std::vector<std::string> all;
  WorkSeen seen;
  for (size_t next = 0; SeeNextWork(&next, &seen);) {
    all.push_back(std::string(Name(seen.work)) + (seen.fingerprint == kA   ? " a"
                                                  : seen.fingerprint == kB ? " b"
                                                                           : " ?"));
  }
  return all;
}

TEST(ProgramAtWorkTest, IsSeenWhileItLives) {
  WorkSeen seen;
  EXPECT_FALSE(SeeWorkOfThisThread(&seen));
  EXPECT_THAT(AllAtWork(), IsEmpty());
  {
    const ProgramAtWork at_work(kA, ProgramWork::kRun);
    ASSERT_TRUE(SeeWorkOfThisThread(&seen));
    EXPECT_EQ(seen.fingerprint, kA);
    EXPECT_EQ(seen.work, ProgramWork::kRun);
    EXPECT_THAT(AllAtWork(), UnorderedElementsAre("run a"));
    {
      const ProgramAtWork within(kB, ProgramWork::kCompile);
      EXPECT_THAT(AllAtWork(), UnorderedElementsAre("run a")) << "the outer one knows for whom";
    }
    EXPECT_THAT(AllAtWork(), UnorderedElementsAre("run a"));
  }
  EXPECT_FALSE(SeeWorkOfThisThread(&seen));
  EXPECT_THAT(AllAtWork(), IsEmpty());
}

TEST(ProgramAtWorkTest, EachThreadHasItsOwnAndHelpersTakeThatOfWhomTheyHelp) {
  const ProgramAtWork at_work(kA, ProgramWork::kCompile);
  const WorkPlace* const mine = WorkOfThisThread();
  std::thread([mine] {
    WorkSeen seen;
    EXPECT_FALSE(SeeWorkOfThisThread(&seen));
    {
      const ProgramAtWork other(kB, ProgramWork::kRestore);
      EXPECT_THAT(AllAtWork(), UnorderedElementsAre("compile a", "restore b"));
    }
    const HelpAtWork help(mine);
    ASSERT_TRUE(SeeWorkOfThisThread(&seen));
    EXPECT_EQ(seen.fingerprint, kA);
    EXPECT_THAT(AllAtWork(), UnorderedElementsAre("compile a"));
  }).join();
  EXPECT_THAT(AllAtWork(), UnorderedElementsAre("compile a"));
}

std::atomic<int64_t> programs_begun{0}, interrupted{0};
std::atomic<bool> work_is_over{false};

// In the middle of a look: until the thread that is looked at works for another program.
void WaitForAnother(int) {
  const int64_t begun = programs_begun.load();
  while (programs_begun.load() == begun && !work_is_over.load()) {
  }
  ++interrupted;
}

TEST(ProgramAtWorkTest, OneThatGoesFromProgramToProgramIsSeenAtOneOfThemOrNone) {
  work_is_over = false;
  std::atomic<const WorkPlace*> place{nullptr};
  std::thread worker([&place] {
    for (int64_t i = 1; !work_is_over.load(); ++i) {
      const ProgramAtWork at_work(i % 2 == 0 ? kA : kB, ProgramWork::kRun);
      place.store(WorkOfThisThread());
      programs_begun.store(i);
    }
  });
  while (place.load() == nullptr) std::this_thread::yield();
  struct sigaction interrupt {};
  interrupt.sa_handler = &WaitForAnother;
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &interrupt, &before), 0);
  std::atomic<bool> enough{false};
  int64_t mixed = 0;
  std::thread reader([&] {
    const HelpAtWork help(place.load());
    while (!enough.load()) {
      WorkSeen seen;
      if (SeeWorkOfThisThread(&seen) && !(seen.fingerprint == kA) && !(seen.fingerprint == kB)) ++mixed;
    }
  });
  for (int i = 0; i < 100; ++i) {
    const int64_t before_it = interrupted.load();
    pthread_kill(reader.native_handle(), SIGUSR1);
    // Sanitizers deliver it later.
    for (int yields = 0; yields < 300 && interrupted.load() == before_it; ++yields) std::this_thread::yield();
  }
  enough = true;
  reader.join();
  work_is_over = true;
  worker.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(mixed, 0);
}

TEST(ProgramAtWorkTest, PlacesOfThreadsThatEndedAreTakenAgain) {
  for (int i = 0; i < 3000; ++i) {
    std::thread([] {
      const ProgramAtWork at_work(kA, ProgramWork::kRun);
      WorkSeen seen;
      EXPECT_TRUE(SeeWorkOfThisThread(&seen));
    }).join();
  }
}

TEST(AlternateStackTest, IsThereForItsThreadAndGoesWithIt) {
  std::thread([] {
    stack_t stack{};
    {
      const AlternateStack alternate;
      ASSERT_EQ(sigaltstack(nullptr, &stack), 0);
      EXPECT_EQ(stack.ss_flags & SS_DISABLE, 0);
      void* const place = stack.ss_sp;
      const AlternateStack another;  // where there is one it does nothing
      ASSERT_EQ(sigaltstack(nullptr, &stack), 0);
      EXPECT_EQ(stack.ss_sp, place);
    }
    ASSERT_EQ(sigaltstack(nullptr, &stack), 0);
  }).join();
}

}  // namespace
}  // namespace tensord
