#include "engine/base/program_at_work.h"

#include <signal.h>

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
