// Segments in blocks that have boxes of their result.

#include <optional>
#include <vector>

#include "backends/cpu/joins/segment_blocks.h"
#include "engine/families/all_families.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

// Transforms of [16, 8, 3] complex numbers along one axis.
class TransformBoxesTest : public testing::Test {
 protected:
  static constexpr Slot kOperand[] = {0}, kResult[] = {1};

  std::optional<SegmentBlocks> Cut(std::vector<int64_t> axes, const std::vector<AxisCut>& cuts,
                                   const std::vector<PassingBox>& passing) {
    const OpDef& fft = *FamilyRegistry().Find("tensord.fft.v1.Fft");
    attrs_ = Attributes(fft.attrs);
    attrs_.Set("kind", int64_t{1}).Set("axes", std::move(axes));
    segment_ = {.bound = {.op = &fft, .attrs = &attrs_, .operands = {type_}, .results = {type_}},
                .operands = kOperand,
                .results = kResult,
                .num_readers = {1}};
    return SegmentBlocks::CutBoxes(segment_, cuts, passing);
  }

  const ConcreteType type_{.dtype = DType::kC128, .shape = {16, 8, 3}};
  Attributes attrs_;
  SegmentInstruction segment_;
};

TEST_F(TransformBoxesTest, LinesThatLieSideBySideAreABlock) {
  const std::vector<AxisCut> cuts = {{.axis = 0, .parts = 2}, {.axis = 2, .parts = 3}};
  const PassingBox box{.slot = kResult[0], .box = TensorBox(type_.shape, cuts)};
  const std::optional<SegmentBlocks> blocks = Cut({1}, cuts, {box});
  ASSERT_TRUE(blocks.has_value());
  const std::vector<BlockWalk::Loop>& loops = blocks->walk().loops();
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_EQ(loops[0].count, 2);
  EXPECT_EQ(loops[0].steps[0], 8 * 16);
  EXPECT_EQ(loops[1].count, 3);
  EXPECT_EQ(loops[1].steps[0], 16 * 8 * 16);
  EXPECT_FALSE(blocks->is_elementwise());
}

TEST_F(TransformBoxesTest, LinesStayWholeAndBesideEachOther) {
  const auto cut_at = [](size_t axis, int64_t parts) { return std::vector<AxisCut>{{.axis = axis, .parts = parts}}; };
  EXPECT_FALSE(Cut({1}, cut_at(1, 2), {}).has_value());     // the line itself
  EXPECT_FALSE(Cut({1}, cut_at(0, 2), {}).has_value());     // three groups of lines are left
  EXPECT_FALSE(Cut({1}, cut_at(2, 2), {}).has_value());     // no equal parts
  EXPECT_FALSE(Cut({0}, cut_at(2, 3), {}).has_value());     // lines end to end
  EXPECT_FALSE(Cut({0, 1}, cut_at(2, 3), {}).has_value());  // two axes
  EXPECT_TRUE(Cut({1}, cut_at(2, 3), {}).has_value());
}

// The box has its lines end to end, and not side by side.
TEST_F(TransformBoxesTest, BoxesHaveTheOrderOfTheTensor) {
  const std::vector<AxisCut> cuts = {{.axis = 2, .parts = 3}};
  const std::vector<size_t> order = {1, 0, 2};
  EXPECT_FALSE(Cut({1}, cuts, {{.slot = kOperand[0], .box = TensorBox(type_.shape, cuts, order)}}).has_value());
  EXPECT_TRUE(Cut({1}, cuts, {{.slot = kOperand[0], .box = TensorBox(type_.shape, cuts)}}).has_value());
}

}  // namespace
}  // namespace tensord::cpu
