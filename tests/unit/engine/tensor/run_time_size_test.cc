#include "engine/tensor/run_time_size.h"

#include "gtest/gtest.h"

namespace tensord {
namespace {

DimExpr Parse(absl::string_view text) {
  const absl::StatusOr<DimExpr> expr = ParseDimExpr(text, /*run_time_symbols=*/true);
  EXPECT_TRUE(expr.ok()) << expr.status();
  return expr.ok() ? *expr : DimExpr();
}

TEST(RunTimeSizeTest, SymbolsAreNamedAfterTheirNodes) {
  EXPECT_EQ(RunTimeSymbol("layer_1/cut.x"), "?layer_1/cut.x");
  EXPECT_EQ(RunTimeSymbol("a-b ~"), "?a~2db~20~7e");
  EXPECT_EQ(RunTimeSymbolPrefix("?a~2db<=n"), "?a~2db");
  EXPECT_EQ(Parse(Parse("2*?a~2db + ?y/1 - 1").ToString()), Parse("?y/1 + 2*?a~2db - 1"));
}

TEST(RunTimeSizeTest, NoClientCanWriteOne) {
  EXPECT_FALSE(ParseDimExpr("?y").ok());
  EXPECT_FALSE(ParseDimExpr("n + ?y").ok());
}

// The table of which expressions keep a bound.
TEST(RunTimeSizeTest, ExtentsFollowFromExpressions) {
  const RunTimeBounds bounds = {{"?y", DimExpr::Symbol("n")}, {"?z", DimExpr(7)}, {"?u", std::nullopt}};
  const struct {
    absl::string_view size;
    Extent extent;
    absl::string_view bound;
  } cases[] = {
      {"5", Extent::kExact, ""},
      {"n - 3", Extent::kExact, ""},
      {"?y", Extent::kUpperBound, "n"},
      {"?z", Extent::kUpperBound, "7"},
      {"?u", Extent::kUnknown, ""},
      {"2*?y + m", Extent::kUpperBound, "m + 2*n"},
      {"?y*?z - m", Extent::kUpperBound, "7*n - m"},
      {"n - ?y", Extent::kUnknown, ""},
      {"?y + ?u", Extent::kUnknown, ""},
      {"min(?y, m)", Extent::kUpperBound, "min(n, m)"},
      {"max(?y, ?z)", Extent::kUpperBound, "max(n, 7)"},
      {"max(?y, ?u)", Extent::kUnknown, ""},
      {"floordiv(?y + 1, 2)", Extent::kUpperBound, "floordiv(n + 1, 2)"},
      {"floordiv(n, ?y)", Extent::kUnknown, ""},
      {"floordiv(?y, m)", Extent::kUnknown, ""},
      {"max(?y, ?z)*min(?y, 1)", Extent::kUpperBound, "max(n, 7)*min(n, 1)"},
      {"?y*floordiv(m + 9, 2)", Extent::kUpperBound, "n*floordiv(m + 9, 2)"},
      {"?y*max(m - 9, ?z)", Extent::kUpperBound, "n*max(m - 9, 7)"},
      // The other factor may be negative, and then the product shrinks as ?y grows.
      {"?y*floordiv(m - 9, 2)", Extent::kUnknown, ""},
      {"?y*min(m - 9, ?z)", Extent::kUnknown, ""},
  };
  for (const auto& c : cases) {
    const Dim dim = WithExtent(Parse(c.size), bounds);
    EXPECT_EQ(dim.size, Parse(c.size));
    EXPECT_EQ(dim.extent, c.extent) << c.size;
    if (c.extent == Extent::kUpperBound) {
      EXPECT_EQ(*dim.bound, Parse(c.bound)) << c.size << ": " << dim.bound->ToString();
    }
  }
}

TEST(RunTimeSizeTest, ABoundIsNoSize) {
  const RunTimeBounds bounds = {{"?y", DimExpr(4)}, {"?z", DimExpr(4)}};
  const Dim y = WithExtent(DimExpr::Symbol("?y"), bounds), z = WithExtent(DimExpr::Symbol("?z"), bounds);
  EXPECT_FALSE(y.is_static());
  EXPECT_FALSE(y == Dim(4));
  EXPECT_FALSE(y == z);
  EXPECT_TRUE(y == WithExtent(DimExpr::Symbol("?y"), bounds));
}

}  // namespace
}  // namespace tensord
