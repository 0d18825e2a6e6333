#include "server/observe/records/stage_times.h"

#include <chrono>
#include <optional>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

using std::chrono::microseconds;

const StageTimes::Clock::time_point kStart = StageTimes::Clock::now();

TEST(StageTimesTest, AStageHasTheTimeSinceTheOneBefore) {
  StageTimes stages(kStart);
  stages.EndAt(Stage::kParse, kStart + microseconds(3));
  stages.EndAt(Stage::kQueue, kStart + microseconds(10));
  EXPECT_EQ(stages.Of(Stage::kParse), absl::Microseconds(3));
  EXPECT_EQ(stages.BeginOf(Stage::kParse), absl::ZeroDuration());
  EXPECT_EQ(stages.Of(Stage::kQueue), absl::Microseconds(7));
  EXPECT_EQ(stages.BeginOf(Stage::kQueue), absl::Microseconds(3));
  EXPECT_EQ(stages.Of(Stage::kCompute), std::nullopt);
  EXPECT_EQ(stages.ToText(), "parse=3,queue=7");
}

TEST(StageTimesTest, AddsUpWhatComesAgain) {
  StageTimes stages(kStart);
  stages.EndAt(Stage::kEncode, kStart + microseconds(1));
  stages.EndAt(Stage::kSend, kStart + microseconds(5));
  stages.EndAt(Stage::kEncode, kStart + microseconds(7));
  stages.EndAt(Stage::kSend, kStart + microseconds(20));
  EXPECT_EQ(stages.ToText(), "encode=3,send=17");
  EXPECT_EQ(stages.BeginOf(Stage::kSend), absl::Microseconds(1));
}

TEST(StageTimesTest, NoTimeIsNegativeOrCountedTwice) {
  StageTimes stages(kStart);
  stages.EndAt(Stage::kLookup, kStart + microseconds(10));
  stages.EndAt(Stage::kQueue, kStart + microseconds(4));
  EXPECT_EQ(stages.Of(Stage::kQueue), absl::ZeroDuration());
  stages.EndAt(Stage::kCompute, kStart + microseconds(12));
  EXPECT_EQ(stages.Of(Stage::kCompute), absl::Microseconds(2));

  // A compilation that claims more time than there was gets what there was.
  StageTimes compiled(StageTimes::Clock::now());
  compiled.EndWith(Stage::kLookup, Stage::kCompile, absl::Hours(1));
  EXPECT_EQ(compiled.Of(Stage::kLookup), absl::ZeroDuration());
  EXPECT_LE(*compiled.Of(Stage::kCompile), compiled.Total());
}

}  // namespace
}  // namespace tensord::server
