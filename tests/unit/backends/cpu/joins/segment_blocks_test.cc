#include "backends/cpu/joins/segment_blocks.h"

#include "engine/families/all_families.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

BoundInstruction Negation(const OpDef& op, const Attributes& attrs) {
  const ConcreteType type{.dtype = DType::kF32, .shape = {8, 6}};
  return {.op = &op, .attrs = &attrs, .operands = {type}, .results = {type}};
}

TEST(SegmentBlocksTest, ElementwiseOpsAreCutIntoEqualBlocks) {
  const Attributes attrs;
  const OpDef& negate = Def(CoreOp::kNegate);
  const std::optional<SegmentBlocks> blocks = SegmentBlocks::Cut(Negation(negate, attrs), 6);
  ASSERT_TRUE(blocks.has_value());
  EXPECT_EQ(blocks->BlockBytes(0), 8 * 4);
  EXPECT_TRUE(blocks->ReadsPiece(0));
  EXPECT_FALSE(SegmentBlocks::Cut(Negation(negate, attrs), 5).has_value());
}

// A chain has no place where a kernel could say that it failed.
TEST(SegmentBlocksTest, ExtensionsWhichMayFailStayByThemselves) {
  const Attributes attrs;
  OpDef extension = Def(CoreOp::kNegate);
  extension.op_class = OpClass::kExtension;
  EXPECT_FALSE(SegmentBlocks::Cut(Negation(extension, attrs), 6).has_value());
}

// Lines stay whole.
TEST(SegmentBlocksTest, TransformsAreCutAcrossOtherAxes) {
  const OpDef& fft = *FamilyRegistry().Find("tensord.fft.v1.Fft");
  Attributes attrs(fft.attrs);
  attrs.Set("kind", int64_t{3}).Set("axes", std::vector<int64_t>{0});
  const BoundInstruction rfft = {.op = &fft,
                                 .attrs = &attrs,
                                 .operands = {{.dtype = DType::kF64, .shape = {8, 6, 5}}},
                                 .results = {{.dtype = DType::kC128, .shape = {5, 6, 5}}}};
  const std::optional<SegmentBlocks> blocks = SegmentBlocks::Cut(rfft, 15);
  ASSERT_TRUE(blocks.has_value());
  EXPECT_EQ(blocks->BlockBytes(0), 8 * 2 * 8);
  EXPECT_TRUE(blocks->ReadsPiece(0));
  EXPECT_FALSE(blocks->MayOverwrite(0, 0));
  EXPECT_FALSE(blocks->is_elementwise());
  EXPECT_FALSE(SegmentBlocks::Cut(rfft, 7).has_value());
  EXPECT_FALSE(SegmentBlocks::Cut(rfft, 60).has_value());
}

}  // namespace
}  // namespace tensord::cpu
