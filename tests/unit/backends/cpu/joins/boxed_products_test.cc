// Products that pass boxes to a contraction.
#include "backends/cpu/joins/boxed_products.h"

#include <optional>
#include <vector>

#include "engine/families/all_families.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

// A segment [m, n] -> [m, n] and the contraction of its result with [m, k] over m.
class ProductJoinTest : public testing::Test {
 protected:
  static constexpr int64_t kM = 512, kN = 256;
  static constexpr Slot kPassed[] = {1}, kResult[] = {3};

  ProductJoinTest() {
    dot_attrs_.Set("lhs_contracting_dimensions", std::vector<int64_t>{0})
        .Set("rhs_contracting_dimensions", std::vector<int64_t>{0})
        .Set("lhs_batching_dimensions", std::vector<int64_t>{})
        .Set("rhs_batching_dimensions", std::vector<int64_t>{});
  }

  static ConcreteType Matrix(int64_t rows, int64_t columns) { return {.dtype = DType::kC64, .shape = {rows, columns}}; }

  std::optional<BlockPlan> Plan(const BoundInstruction& product, absl::Span<const Slot> operands) {
    const SegmentInstruction first{.bound = product, .operands = operands, .results = kPassed, .num_readers = {1}};
    const SegmentInstruction dot{.bound = {.op = &Def(CoreOp::kDotGeneral),
                                           .attrs = &dot_attrs_,
                                           .operands = {Matrix(kM, kN), Matrix(kM, 4)},
                                           .results = {Matrix(kN, 4)}},
                                 .operands = dot_operands_,
                                 .results = kResult,
                                 .num_readers = {1}};
    const std::vector<SegmentInstruction> segments = {first, dot};
    return PlanProductJoin(segments, {.block_bytes = 64 << 10, .large_block_bytes = 64 << 10, .least_join_bytes = 1});
  }

  Attributes dot_attrs_{Def(CoreOp::kDotGeneral).attrs};
  const std::vector<Slot> dot_operands_ = {1, 2};
};

TEST_F(ProductJoinTest, TakesAProduct) {
  Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
  attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{1})
      .Set("rhs_contracting_dimensions", std::vector<int64_t>{0})
      .Set("lhs_batching_dimensions", std::vector<int64_t>{})
      .Set("rhs_batching_dimensions", std::vector<int64_t>{});
  const Slot operands[] = {0, 4};
  EXPECT_TRUE(Plan({.op = &Def(CoreOp::kDotGeneral),
                    .attrs = &attrs,
                    .operands = {Matrix(kM, 2), Matrix(2, kN)},
                    .results = {Matrix(kM, kN)}},
                   operands)
                  .has_value());
}

// Its blocks would be transformed in lanes, however long and few the lines are.
TEST_F(ProductJoinTest, LeavesATransformAlone) {
  const OpDef& fft = *FamilyRegistry().Find("tensord.fft.v1.Fft");
  Attributes attrs(fft.attrs);
  attrs.Set("kind", int64_t{1}).Set("axes", std::vector<int64_t>{0});
  const Slot operands[] = {0};
  EXPECT_FALSE(Plan({.op = &fft, .attrs = &attrs, .operands = {Matrix(kM, kN)}, .results = {Matrix(kM, kN)}}, operands)
                   .has_value());
}

}  // namespace
}  // namespace tensord::cpu
