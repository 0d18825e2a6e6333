#include "backends/cpu/joins/block_plan.h"

#include <optional>
#include <utility>
#include <vector>

#include "engine/families/all_families.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kBlocks = 6;
const ConcreteType kMatrix{.dtype = DType::kF32, .shape = {8, 6}};
constexpr int64_t kPieceBytes = 64;  // 8 * 6 * 4 / kBlocks, rounded up

// Segments that each read what the one before wrote; slot s is read by segment s.
class BlockPlannerTest : public testing::Test {
 protected:
  BlockPlannerTest() : fft_attrs_(Fft().attrs) {
    fft_attrs_.Set("kind", int64_t{1}).Set("axes", std::vector<int64_t>{0});
  }

  static const OpDef& Fft() { return *FamilyRegistry().Find("tensord.fft.v1.Fft"); }

  void AddNegation() { Add({.op = &Def(CoreOp::kNegate), .attrs = &no_attrs_}, kMatrix, kMatrix); }
  // A transform writes over nothing if its result is larger.
  void AddTransformOfReals() {
    Add({.op = &Fft(), .attrs = &fft_attrs_}, kMatrix, {.dtype = DType::kC64, .shape = kMatrix.shape});
  }

  // Plans the first `length` of all segments in blocks.
  BlockPlan Plan(size_t length) {
    BlockPlanner planner(segments_, kBlocks);
    while (planner.num_added() < segments_.size()) {
      std::optional<SegmentBlocks> cut = SegmentBlocks::Cut(planner.next().bound, kBlocks);
      EXPECT_TRUE(cut.has_value());
      planner.Add(*std::move(cut));
    }
    return std::move(planner).Plan(length);
  }

  std::vector<SegmentInstruction> segments_;

 private:
  void Add(BoundInstruction bound, const ConcreteType& operand, const ConcreteType& result) {
    bound.operands = {operand};
    bound.results = {result};
    const size_t s = segments_.size();
    segments_.push_back({.bound = std::move(bound),
                         .operands = absl::MakeConstSpan(kSlots).subspan(s, 1),
                         .results = absl::MakeConstSpan(kSlots).subspan(s + 1, 1),
                         .num_readers = {1}});
  }

  static constexpr Slot kSlots[] = {0, 1, 2, 3, 4};
  const Attributes no_attrs_;
  Attributes fft_attrs_;
};

TEST_F(BlockPlannerTest, ValuesPassInTheBlockAndTheEndsLieInSlots) {
  for (int i = 0; i < 3; ++i) AddNegation();
  const BlockPlan plan = Plan(3);
  EXPECT_EQ(plan.num_blocks, kBlocks);
  EXPECT_EQ(plan.passing, (std::vector<Slot>{1, 2}));
  ASSERT_EQ(plan.segments.size(), 3u);
  EXPECT_FALSE(plan.segments[0].operands[0].passes);
  EXPECT_EQ(plan.segments[0].operands[0].slot, 0);
  for (size_t s = 1; s < 3; ++s) {
    EXPECT_TRUE(plan.segments[s].operands[0].passes);
    EXPECT_EQ(plan.segments[s].operands[0].offset, plan.segments[s - 1].results[0].offset);
  }
  EXPECT_FALSE(plan.segments[2].results[0].passes);
  EXPECT_EQ(plan.segments[2].results[0].slot, 3);
  // Both lie in one place: an elementwise op writes over its operand.
  EXPECT_EQ(plan.passing_bytes, kPieceBytes);
}

TEST_F(BlockPlannerTest, ResultsThatMayOverwriteNothingHaveAPlaceOfTheirOwn) {
  AddNegation();
  AddTransformOfReals();
  AddNegation();
  const BlockPlan plan = Plan(3);
  EXPECT_EQ(plan.segments[0].results[0].offset, 0);
  EXPECT_EQ(plan.segments[1].results[0].offset, kPieceBytes);
  EXPECT_EQ(plan.passing_bytes, kPieceBytes + kPieceBytes);
}

TEST_F(BlockPlannerTest, APlanOfFewerSegmentsEndsInASlot) {
  for (int i = 0; i < 3; ++i) AddNegation();
  const BlockPlan plan = Plan(2);
  ASSERT_EQ(plan.segments.size(), 2u);
  EXPECT_EQ(plan.passing, (std::vector<Slot>{1}));
  EXPECT_FALSE(plan.segments[1].results[0].passes);
  EXPECT_EQ(plan.segments[1].results[0].slot, 2);
}

TEST_F(BlockPlannerTest, IsClosedIfNobodyElseReads) {
  for (int i = 0; i < 2; ++i) AddNegation();
  for (const int32_t readers : {1, 2}) {
    segments_[0].num_readers[0] = readers;
    BlockPlanner planner(segments_, kBlocks);
    for (int i = 0; i < 2; ++i) planner.Add(*SegmentBlocks::Cut(planner.next().bound, kBlocks));
    EXPECT_TRUE(planner.Makes(1));
    EXPECT_FALSE(planner.Makes(0));
    EXPECT_EQ(planner.IsClosed(), readers == 1);
  }
}

TEST_F(BlockPlannerTest, TrafficIsWhatPassesAndWhatEachBlockReadsAgain) {
  AddNegation();
  AddNegation();
  segments_[0].bound.op = &Def(CoreOp::kAdd);
  constexpr Slot kOperands[] = {0, 4};
  segments_[0].operands = kOperands;
  segments_[0].bound.operands.push_back({.dtype = DType::kF32, .shape = {}});
  BlockPlanner planner(segments_, kBlocks);
  SegmentBlocks cut = *SegmentBlocks::Cut(planner.next().bound, kBlocks);
  const BlockTraffic first = planner.TrafficOf(cut);
  EXPECT_EQ(first.passed_bytes, 0);
  EXPECT_EQ(first.read_again, 4 * (kBlocks - 1));
  planner.Add(std::move(cut));
  const BlockTraffic second = planner.TrafficOf(*SegmentBlocks::Cut(planner.next().bound, kBlocks));
  EXPECT_EQ(second.passed_bytes, kMatrix.num_bytes());
  EXPECT_EQ(second.passed_elements, kMatrix.num_elements());
  EXPECT_EQ(second.read_again, 0);
}

TEST(BlockTrafficTest, PaysIfLessIsReadAgainAndSegmentsWaitForMemory) {
  const BlockTraffic traffic = {.passed_bytes = 400, .passed_elements = 100, .read_again = 400};
  EXPECT_TRUE(traffic.Pays(/*multiplications=*/6400, /*most_an_element=*/64));
  EXPECT_FALSE(traffic.Pays(6401, 64));
  BlockTraffic more = traffic;
  more.Add({.read_again = 1});
  EXPECT_FALSE(more.Pays(0, 64));
}

TEST(AreEnoughBlocksTest, FewOnesHaveToBeSmall) {
  const ChainLimits limits{.least_blocks = 16};
  EXPECT_TRUE(AreEnoughBlocks(16, 1000, 1000, limits));
  EXPECT_FALSE(AreEnoughBlocks(15, 251, 1000, limits));
  EXPECT_TRUE(AreEnoughBlocks(15, 250, 1000, limits));
}

}  // namespace
}  // namespace tensord::cpu
