#include "engine/exec/memory/huge_page_heap.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace tensord {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Null under sanitizers, where there is no heap.
class HugePageHeapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const block = heap_.Take(64);
    if (block == nullptr) GTEST_SKIP() << "the system gives no such range of addresses";
    heap_.Give(block, 64);
  }

  HugePageHeap heap_{8 * kMiB};
};

TEST_F(HugePageHeapTest, BlocksFillTheRangeAndAreGivenAgain) {
  std::vector<char*> blocks;
  while (char* const block = static_cast<char*>(heap_.Take(kMiB))) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    EXPECT_TRUE(heap_.Owns(block));
    EXPECT_TRUE(heap_.Owns(block + kMiB - 1));
    std::memset(block, static_cast<int>(blocks.size()) + 1, static_cast<size_t>(kMiB));
    blocks.push_back(block);
  }
  ASSERT_EQ(blocks.size(), 8u);
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i][0], static_cast<char>(i + 1));
    EXPECT_EQ(blocks[i][kMiB - 1], static_cast<char>(i + 1));
  }
  heap_.Give(blocks[3], kMiB);
  EXPECT_EQ(heap_.Take(kMiB), blocks[3]);
  EXPECT_EQ(blocks[3][5], 4);
  // Neighbours that were given back are one block again.
  heap_.Give(blocks[4], kMiB);
  heap_.Give(blocks[5], kMiB);
  EXPECT_EQ(heap_.Take(2 * kMiB), blocks[4]);
}

TEST_F(HugePageHeapTest, ReturnedPagesAreNewWhenTheyComeAgain) {
  // Not at a page's ends, whose pages are others' too.
  heap_.Take(64);
  char* const block = static_cast<char*>(heap_.Take(kMiB));
  char* const next = static_cast<char*>(heap_.Take(kMiB));
  std::memset(block, 1, static_cast<size_t>(kMiB));
  std::memset(next, 2, static_cast<size_t>(kMiB));
  HugePageHeap::ReturnPages(block, kMiB);
  heap_.Give(block, kMiB);
  ASSERT_EQ(heap_.Take(kMiB), block);
  EXPECT_EQ(block[kMiB / 2], 0);
  EXPECT_EQ(next[0], 2);
  EXPECT_EQ(next[kMiB - 1], 2);
  HugePageHeap::ReturnPages(next, 64);  // no whole page
  EXPECT_EQ(next[0], 2);
}

TEST(HugePageHeapNoneTest, WithoutARangeThereAreNoBlocks) {
  for (const int64_t bytes : {int64_t{0}, kMiB, int64_t{1} << 62}) {
    HugePageHeap heap(bytes);
    EXPECT_EQ(heap.Take(64), nullptr);
    EXPECT_FALSE(heap.Owns(&heap));
  }
}

}  // namespace
}  // namespace tensord
