#include "engine/exec/memory/run_memory.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testlib/runs/hidden_memory_backend.h"

namespace tensord {
namespace {

using Kind = SlotHome::Kind;

TEST(RunMemory, ScratchLiesWhereThePlanHasIt) {
  HiddenMemoryBackend backend;
  BufferPlan plan;
  plan.result_bytes = {512};
  plan.arena_bytes = 256;
  plan.homes = {{Kind::kArena, 0, 64}};
  plan.scratch = {{Kind::kArena, 0, 128}, {}, {Kind::kResult, 0, 192}};
  plan.outputs = {{.home = {Kind::kResult, 0, 0}, .bytes = 512}};
  const auto memory = RunMemory::Allocate(plan, &backend, {}, {});
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_EQ(memory->scratch().size(), 3u);
  EXPECT_EQ(memory->scratch()[0], static_cast<char*>(memory->slots()[0]) + 64);
  EXPECT_EQ(memory->scratch()[1], nullptr);
  EXPECT_EQ(memory->scratch()[2], static_cast<char*>(memory->Results()[0]->address()) + 192);
}

TEST(RunMemory, NoScratchIsNoTable) {
  HiddenMemoryBackend backend;
  BufferPlan plan;
  plan.arena_bytes = 64;
  plan.homes = {{Kind::kArena, 0, 0}};
  const auto memory = RunMemory::Allocate(plan, &backend, {}, {});
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(memory->scratch().empty());
}

TEST(RunMemory, ScratchIsAlignedInAnArgumentThatIsNot) {
  HiddenMemoryBackend backend;
  alignas(64) char bytes[512];
  BufferPlan plan;
  plan.scratch = {{Kind::kArgument, 0, 64}};
  for (const int64_t off : {0, 8, 56}) {
    const BufferPtr argument = std::make_shared<const Buffer>(bytes + off, 256, [](void*, int64_t) {});
    const std::vector<BufferPtr> arguments = {argument};
    const auto memory = RunMemory::Allocate(plan, &backend, arguments, {});
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(memory->scratch()[0], bytes + (off == 0 ? 64 : 128));
  }
}

}  // namespace
}  // namespace tensord
