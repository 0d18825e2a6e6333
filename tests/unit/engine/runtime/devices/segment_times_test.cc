#include "engine/runtime/devices/segment_times.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/run.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

class SegmentTimesTest : public testing::Test {
 protected:
  SegmentTimesTest() {
    absl::StatusOr<Graph> graph = ParseGraph(R"(graph "two" {
      %x = input : f32[2]
      %y = add(%x, %x)
      %z = multiply(%y, %x)
      output "z" = %z
    })",
                                             CoreRegistry());
    const auto program = Compile(*std::move(graph), {.device = "gated:0"}, Fingerprint(), &backend_);
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *program;
  }

  // A run whose two segments took that long.
  RunTimes TimesOf(absl::Duration add, absl::Duration multiply) const {
    const std::vector<ConcreteType> types = {{.dtype = DType::kF32, .shape = {2}}};
    const auto start = std::chrono::steady_clock::time_point();
    RunTimes times;
    times.parts.push_back({.bound = *program_->Bind(types),
                           .times = {{start, start + absl::ToChronoNanoseconds(add)},
                                     {start, start + absl::ToChronoNanoseconds(multiply)}},
                           .owner = nullptr});
    return times;
  }

  RunRequest Request(SegmentTimes* times) const {
    const auto bytes = std::make_shared<std::vector<float>>(2, 1.0f);
    RunTensor argument{.type = {.dtype = DType::kF32, .shape = {2}}};
    argument.bytes = std::shared_ptr<const void>(bytes, bytes->data());
    RunRequest request{.program = program_, .arguments = {std::move(argument)}};
    request.segment_times = times;
    return request;
  }

  GatedBackend backend_;
  CompiledProgramPtr program_;
};

TEST_F(SegmentTimesTest, ABoundBelongsToItsBucket) {
  SegmentTimes times;
  times.Add("cpu:0", TimesOf(absl::Microseconds(1), absl::Microseconds(1) + absl::Nanoseconds(1)));
  times.Add("cpu:0", TimesOf(absl::ZeroDuration(), absl::Hours(1)));
  const auto series = times.Read();
  ASSERT_EQ(series.size(), 2u);
  const SegmentTimes::Series& add = series.at({"cpu:0", "add"});
  EXPECT_EQ(add.counts[0], 2);
  EXPECT_EQ(add.sum, absl::Microseconds(1));
  const SegmentTimes::Series& multiply = series.at({"cpu:0", "multiply"});
  EXPECT_EQ(multiply.counts[0], 0);
  EXPECT_EQ(multiply.counts[1], 1);
  EXPECT_EQ(multiply.counts[SegmentTimes::kNumBounds], 1) << "longer than all bounds";
  EXPECT_EQ(SegmentTimes::Bound(0), absl::Microseconds(1));
  EXPECT_EQ(SegmentTimes::Bound(SegmentTimes::kNumBounds - 1), absl::Microseconds(16'777'216));
}

TEST_F(SegmentTimesTest, NamesAreBounded) {
  SegmentTimes times;
  for (int i = 0; i < 200; ++i) {
    times.Add(absl::StrCat("device:", i), TimesOf(absl::Microseconds(1), absl::Microseconds(1)));
  }
  int64_t named = 0, segments = 0;
  for (const auto& [key, series] : times.Read()) {
    named += key.second != SegmentTimes::kOtherOps;
    for (const int64_t count : series.counts) segments += count;
  }
  EXPECT_EQ(named, static_cast<int64_t>(SegmentTimes::kMaxOps));
  EXPECT_EQ(segments, 400) << "none is lost";
}

TEST_F(SegmentTimesTest, OneRunInSeventeenIsTimed) {
  SegmentTimes times;
  for (uint64_t i = 0; i < 2 * SegmentTimes::kEvery; ++i) {
    ASSERT_TRUE(RunProgram(Request(&times), absl::ZeroDuration()).ok());
  }
  const auto series = times.Read();
  ASSERT_EQ(series.size(), 2u);
  for (const auto& [key, of_op] : series) {
    EXPECT_EQ(key.first, "gated:0");
    int64_t count = 0;
    for (const int64_t in_bucket : of_op.counts) count += in_bucket;
    EXPECT_EQ(count, 2) << key.second;
  }
  ASSERT_TRUE(RunProgram(Request(nullptr), absl::ZeroDuration()).ok()) << "and nobody need ask";
}

TEST_F(SegmentTimesTest, AnyThreadAdds) {
  SegmentTimes times;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        if (times.TimesThisRun()) times.Add("cpu:0", TimesOf(absl::Microseconds(2), absl::Microseconds(2)));
        times.Read();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(times.Read().at({"cpu:0", "add"}).counts[1], 24) << "of 400, the first and each 17th after it";
}

}  // namespace
}  // namespace tensord
