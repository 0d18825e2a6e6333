#include "engine/families/linalg/matrix_refusal.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/linalg_properties.h"

namespace tensord {
namespace {

// The oracle is judged by the same properties as the kernels.
TEST(LinalgReferenceTest, HasTheProperties) {
  ForEachRandomCall([](const LinalgCall& call) {
    const absl::StatusOr<std::vector<Literal>> results = RunReference(call);
    ASSERT_TRUE(results.ok()) << results.status() << " " << call.Name();
    ExpectProperties(call, *results);
  });
}

TEST(LinalgReferenceTest, SmallMatricesByHand) {
  const Literal a = *Literal::FromBytes({DType::kF64, {2, 2}}, [] {
    static const double values[] = {4, 2, 2, 3};
    return absl::string_view(reinterpret_cast<const char*>(values), sizeof(values));
  }());
  const std::vector<Literal> determinant = *RunReference(LinalgCall(LinalgOp::kDeterminant, {a}));
  EXPECT_DOUBLE_EQ(determinant[0].values<double>()[0], 8);
  const std::vector<Literal> inverse = *RunReference(LinalgCall(LinalgOp::kInverse, {a}));
  EXPECT_DOUBLE_EQ(inverse[0].values<double>()[0], 0.375);
  EXPECT_DOUBLE_EQ(inverse[0].values<double>()[1], -0.25);
  const std::vector<Literal> factor = *RunReference(LinalgCall(LinalgOp::kCholesky, {a}));
  EXPECT_DOUBLE_EQ(factor[0].values<double>()[0], 2);
  EXPECT_DOUBLE_EQ(factor[0].values<double>()[1], 1);
  EXPECT_EQ(factor[0].values<double>()[2], 0);
  const std::vector<Literal> rank = *RunReference(LinalgCall(LinalgOp::kMatrixRank, {Filled(DType::kF64, {3, 2}, 1)}));
  EXPECT_EQ(rank[0].values<int64_t>()[0], 1);
}

}  // namespace
}  // namespace tensord
