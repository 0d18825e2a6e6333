#include "engine/exec/memory/block_placement.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

// Empty, or the first rule that is broken.
std::string Broken(const std::vector<FreeRegion>& regions, const std::vector<MemoryBlock>& blocks,
                   const BlockPlacement& placement) {
  for (size_t r = 0; r < regions.size(); ++r) {
    if (placement.region_bytes[r] < regions[r].bytes || placement.region_bytes[r] > regions[r].most_bytes) {
      return absl::StrCat("region ", r, " has ", placement.region_bytes[r], " bytes");
    }
  }
  for (size_t a = 0; a < blocks.size(); ++a) {
    const MemoryBlock& block = blocks[a];
    const BlockPlace& place = placement.places[a];
    if (place.offset < 0 || place.offset % kBufferAlignment != 0) return absl::StrCat("block ", a, " is not aligned");
    if (place.region < 0) {
      if (place.offset + block.bytes > placement.arena_bytes) return absl::StrCat("block ", a, " is beyond the arena");
    } else {
      const FreeRegion& region = regions[static_cast<size_t>(place.region)];
      if (place.offset + block.bytes > placement.region_bytes[static_cast<size_t>(place.region)] ||
          block.birth < region.first_free || region.last_free < block.death) {
        return absl::StrCat("block ", a, " does not fit into its region");
      }
    }
    for (size_t b = 0; b < a; ++b) {
      const MemoryBlock& other = blocks[b];
      const BlockPlace& there = placement.places[b];
      const bool meet = place.region == there.region && block.birth <= other.death && other.birth <= block.death;
      if (meet && place.offset < there.offset + std::max<int64_t>(other.bytes, 1) &&
          there.offset < place.offset + std::max<int64_t>(block.bytes, 1)) {
        return absl::StrCat("blocks ", a, " and ", b, " overlap");
      }
    }
  }
  return "";
}

TEST(BlockPlacement, NoTwoBlocksMeet) {
  std::mt19937_64 random(5);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const int32_t instructions = static_cast<int32_t>(1 + below(60));
    const auto lifetime = [&](int32_t* birth, int32_t* death, int64_t longest) {
      *birth = static_cast<int32_t>(below(instructions));
      *death = static_cast<int32_t>(std::min<int64_t>(instructions - 1, *birth + below(longest)));
    };
    std::vector<FreeRegion> regions(static_cast<size_t>(below(6)));
    for (FreeRegion& region : regions) {
      region.bytes = below(3000);
      region.most_bytes = region.bytes + below(500);
      lifetime(&region.first_free, &region.last_free, 60);
    }
    std::vector<MemoryBlock> blocks(static_cast<size_t>(below(120)));
    for (MemoryBlock& block : blocks) {
      block.bytes = below(2000);
      lifetime(&block.birth, &block.death, round % 2 == 0 ? 8 : 60);
    }
    const auto placement = PlaceBlocks(regions, instructions, blocks);
    ASSERT_TRUE(placement.has_value());
    EXPECT_EQ(Broken(regions, blocks, *placement), "");
  }
}

TEST(BlockPlacement, BlocksOfGrowingSizesTakeLittleMoreThanIsAlive) {
  std::vector<MemoryBlock> blocks;
  for (int32_t i = 0; i < 20; ++i) blocks.push_back({.bytes = 640000 + 64000 * i, .birth = i, .death = i + 1});
  const auto placement = PlaceBlocks({}, 21, blocks);
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(placement->arena_bytes, blocks[18].bytes + blocks[19].bytes);
}

TEST(BlockPlacement, ManyBlocksAtOnceArePlacedAsTheyCome) {
  // All alive at once: whoever looks at all neighbours of each takes a billion steps.
  std::vector<MemoryBlock> blocks(30000, {.bytes = 64, .birth = 0, .death = 9});
  for (size_t b = 0; b < blocks.size(); b += 3) blocks[b] = {.bytes = 128, .birth = 5, .death = 7};
  for (size_t b = 1; b < blocks.size(); b += 3) blocks[b].death = 4;
  const auto placement = PlaceBlocks({}, 10, blocks);
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(Broken({}, {}, *placement), "");
  EXPECT_LE(placement->arena_bytes, 40000 * 64);
}

TEST(BlockPlacement, RegionsAreFilledFirst) {
  const std::vector<MemoryBlock> blocks = {{.bytes = 100000, .birth = 0, .death = 1},
                                           {.bytes = 100000, .birth = 2, .death = 3},
                                           {.bytes = 100001, .birth = 0, .death = 1},
                                           {.bytes = 100000, .birth = 3, .death = 4}};
  FreeRegion region = {.bytes = 100000, .most_bytes = 100000, .first_free = 0, .last_free = 3};
  const auto placement = PlaceBlocks({region}, 5, blocks);
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(Broken({region}, blocks, *placement), "");
  EXPECT_EQ(placement->places[2].region, -1);
  EXPECT_EQ(placement->places[3].region, -1);
  EXPECT_EQ(placement->arena_bytes, 100032);
}

TEST(BlockPlacement, ARegionGrowsWhereThatSavesMore) {
  const std::vector<MemoryBlock> blocks = {{.bytes = 101000, .birth = 0, .death = 1}};
  for (int64_t most : {100000, 100999, 101000, 110000}) {
    const FreeRegion region = {.bytes = 100000, .most_bytes = most, .first_free = 0, .last_free = 1};
    const auto placement = PlaceBlocks({region}, 2, blocks);
    ASSERT_TRUE(placement.has_value());
    EXPECT_EQ(placement->arena_bytes, most < 101000 ? 101056 : 0);
    EXPECT_EQ(placement->region_bytes[0], most < 101000 ? 100000 : 101000);
  }
}

TEST(BlockPlacement, AnArenaThatOverflowsIsRefused) {
  const std::vector<MemoryBlock> one = {{.bytes = std::numeric_limits<int64_t>::max(), .birth = 0, .death = 0}};
  EXPECT_FALSE(PlaceBlocks({}, 1, one).has_value());
  const std::vector<MemoryBlock> many(256, {.bytes = int64_t{1} << 56, .birth = 0, .death = 0});
  EXPECT_FALSE(PlaceBlocks({}, 1, many).has_value());
}

}  // namespace
}  // namespace tensord
