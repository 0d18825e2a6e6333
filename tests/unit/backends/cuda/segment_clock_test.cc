// The times of segments, by events on a lane of the host CUDA device.
#include "backends/cuda/segment_clock.h"

#include <chrono>
#include <memory>
#include <vector>

#include "backends/cuda/memory/device_pool.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using Clock = std::chrono::steady_clock;

class SegmentClockTest : public CudaTest {
 protected:
  // Times so many fills of memory as segments of a run.
  void TimeFills(size_t segments) {
    const std::shared_ptr<Context> context = Entered();
    const auto pool = *DevicePool::Create(context, {.limit_bytes = kMiB});
    const std::shared_ptr<Buffer> buffer = *pool->Allocate(256);
    const CuAddress address = reinterpret_cast<CuAddress>(buffer->address());
    const auto lane = *Lane::Create(context, libraries_.get());
    std::vector<SegmentTime> times(segments);
    const Clock::time_point before = Clock::now();
    {
      SegmentClock clock(context, absl::MakeSpan(times));
      ASSERT_TRUE(clock.Mark(lane.get()).ok());
      for (size_t i = 0; i < segments; ++i) {
        ASSERT_TRUE(lane->Fill(address, 1, 256).ok());
        ASSERT_TRUE(clock.Mark(lane.get()).ok());
      }
      ASSERT_TRUE(lane->Finish().ok());
      ASSERT_TRUE(clock.Read().ok());
    }
    const Clock::time_point after = Clock::now();
    Clock::time_point last = before;
    for (const SegmentTime& time : times) {
      EXPECT_GE(time.start, last) << "segments follow each other";
      EXPECT_GE(time.end, time.start);
      last = time.end;
    }
    // The device's clock is a float: it rounds.
    EXPECT_LE(last, after + std::chrono::milliseconds(1));
    if (segments > 0) {
      EXPECT_GT(last, before);
    }
  }
};

TEST_F(SegmentClockTest, ManySegmentsTakeFewEvents) {
  for (const size_t segments : {size_t{0}, size_t{1}, SegmentClock::kMostEvents - 1, SegmentClock::kMostEvents,
                                3 * SegmentClock::kMostEvents + 7}) {
    SCOPED_TRACE(segments);
    const long made = hostCudaCalls("cuEventCreate");
    TimeFills(segments);
    const long of_lane = Lane::kPlaces + 1;
    EXPECT_LE(hostCudaCalls("cuEventCreate") - made, static_cast<long>(SegmentClock::kMostEvents) + of_lane);
  }
}

// A delay is the time of what comes after it.
TEST_F(SegmentClockTest, TheDeviceMeasures) {
  hostCudaSet("HOLD", "1");
  const std::shared_ptr<Context> context = Entered();
  const auto lane = *Lane::Create(context, libraries_.get());
  std::vector<SegmentTime> times(2);
  SegmentClock clock(context, absl::MakeSpan(times));
  const Clock::time_point before = Clock::now();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(clock.Mark(lane.get()).ok());
  const Clock::time_point enqueued = Clock::now();
  hostCudaSet("HOLD", "");
  ASSERT_TRUE(lane->Finish().ok());
  ASSERT_TRUE(clock.Read().ok());
  EXPECT_GE(times[0].start, before);
  EXPECT_GE(times[1].end, enqueued - std::chrono::milliseconds(1)) << "nothing ran before it was let go";
  EXPECT_EQ(times[0].end, times[1].start);
}

}  // namespace
}  // namespace tensord::cuda
