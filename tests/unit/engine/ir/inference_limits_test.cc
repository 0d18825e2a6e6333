#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

// An input whose size has `terms` parts times three, and `nodes` negations of it one after the other.
Graph ChainOverLongSize(int terms, int nodes) {
  Graph graph;
  graph.AddInput("n", {.dtype = DType::kF32, .shape = {Dim(DimExpr::Symbol("n"))}});
  std::string text;
  for (int i = 0; i < terms; ++i) absl::StrAppend(&text, i == 0 ? "" : " + ", "floordiv(n*n, ", i + 2, ")");
  const absl::StatusOr<DimExpr> size = ParseDimExpr(text);
  EXPECT_TRUE(size.ok()) << size.status();
  ValueId value = graph.AddInput("x", {.dtype = DType::kF32, .shape = {Dim(size.value_or(DimExpr(1)))}});
  const OpDef& op = Def(CoreOp::kNegate);
  for (int i = 0; i < nodes; ++i) {
    Node node{.name = absl::StrCat("negate", i), .op = &op, .attrs = Attributes(op.attrs)};
    node.operands.push_back(value);
    value = graph.AddNode(std::move(node));
  }
  graph.AddOutput("y", value);
  return graph;
}

TEST(InferenceLimitsTest, LongSizesInFewNodes) {
  Graph graph = ChainOverLongSize(200, 100);
  EXPECT_TRUE(InferTypes(&graph).ok());
}

TEST(InferenceLimitsTest, LongSizesInManyNodes) {
  Graph graph = ChainOverLongSize(200, 2'000);
  const absl::Status status = InferTypes(&graph).status();
  const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{});
  EXPECT_EQ(detail.reason, "LIMIT_EXCEEDED") << status;
  EXPECT_EQ(detail.limit, "expression_parts");
  EXPECT_EQ(detail.limit_value, kMaxExpressionParts);
  EXPECT_EQ(detail.op, "negate");
}

TEST(InferenceLimitsTest, PlainSymbolsInManyNodes) {
  Graph graph = ChainOverLongSize(1, 100'000);
  EXPECT_TRUE(InferTypes(&graph).ok());
}

TEST(InferenceLimitsTest, TooLongATextIsNotRead) {
  const absl::Status status = ParseGraph(std::string(kMaxGraphTextBytes + 1, ' '), CoreRegistry()).status();
  const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{});
  EXPECT_EQ(detail.reason, "LIMIT_EXCEEDED") << status;
  EXPECT_EQ(detail.limit, "graph_text_bytes");
  EXPECT_EQ(detail.limit_value, static_cast<int64_t>(kMaxGraphTextBytes));
  EXPECT_EQ(detail.actual_value, detail.limit_value + 1);
}

}  // namespace
}  // namespace tensord
