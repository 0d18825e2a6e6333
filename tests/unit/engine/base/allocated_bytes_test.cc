#include "engine/base/allocated_bytes.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tensord {
namespace {

TEST(AllocatedBytesTest, CountsWhatStaysOfThisThread) {
  const AllocatedBytes outer;
  std::unique_ptr<std::vector<char>> kept;
  {
    const AllocatedBytes inner;
    for (int i = 0; i < 100; ++i) std::make_unique<std::vector<char>>(1 << 16);
    EXPECT_EQ(inner.bytes(), 0) << "nothing stayed";
    kept = std::make_unique<std::vector<char>>(1 << 20);
    EXPECT_GE(inner.bytes(), (1 << 20) + static_cast<int64_t>(sizeof(*kept)));
    EXPECT_LE(inner.bytes(), (1 << 20) + 8192) << "whole pages";
    AllocatedBytes::Add(4096);
    EXPECT_GE(inner.bytes(), (1 << 20) + 4096);
  }
  EXPECT_GE(outer.bytes(), (1 << 20) + 4096) << "what the inner one saw is the outer one's too";
  const int64_t before = outer.bytes();
  std::unique_ptr<char[]> other;
  std::thread([&other] { other = std::make_unique<char[]>(1 << 22); }).join();
  EXPECT_LT(outer.bytes(), before + (1 << 20)) << "another thread's";
  kept.reset();
  EXPECT_LE(outer.bytes(), before - (1 << 20) + 8192) << "but for what the other thread's start took";
}

TEST(AllocatedBytesTest, APauseLeavesOutWhatOthersTook) {
  auto others = std::make_unique<char[]>(1 << 20);
  const AllocatedBytes outer;
  {
    const AllocatedBytes inner;
    const auto own = std::make_unique<char[]>(1 << 16);
    std::unique_ptr<char[]> kept;
    {
      const AllocatedBytes::Pause pause;
      others.reset();
      const AllocatedBytes within;
      kept = std::make_unique<char[]>(1 << 18);
      EXPECT_GE(within.bytes(), 1 << 18) << "who asks anew is told";
    }
    EXPECT_GE(inner.bytes(), 1 << 16);
    EXPECT_LT(inner.bytes(), 1 << 17);
    const AllocatedBytes::Pause pause;
    kept.reset();
  }
  EXPECT_EQ(outer.bytes(), 0);
}

TEST(AllocatedBytesTest, NobodyCountsAfterwards) {
  { const AllocatedBytes gone; }
  const auto block = std::make_unique<char[]>(1 << 20);
  const AllocatedBytes later;
  EXPECT_EQ(later.bytes(), 0);
}

}  // namespace
}  // namespace tensord
