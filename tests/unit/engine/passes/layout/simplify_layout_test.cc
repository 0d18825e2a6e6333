#include "engine/passes/layout/simplify_layout.h"

#include "absl/strings/str_cat.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/algebra/eliminate_dead_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using testing::HasSubstr;

std::string Simplified(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, CoreRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return "";
  EXPECT_TRUE(InferTypes(&*graph).ok());
  EXPECT_TRUE(SimplifyLayout(&*graph, {}).ok());
  EXPECT_TRUE(EliminateDeadCode(&*graph, {}).ok());
  EXPECT_TRUE(VerifyTypes(*graph).ok());
  return PrintGraph(*graph);
}

TEST(SimplifyLayout, StridesWhoseProductOverflowsMeetOneElementOnly) {
  EXPECT_THAT(Simplified(R"(graph "g" {
    %x = input : bool[100]
    %a = slice(%x) {start_indices = [3], limit_indices = [100], strides = [60]}
    %b = slice(%a) {start_indices = [1], limit_indices = [2], strides = [9223372036854775807]}
    output "y" = %b
  })"),
              HasSubstr("slice(%x) {start_indices = [63], limit_indices = [64]}"));
}

TEST(SimplifyLayout, EmptySlices) {
  EXPECT_THAT(Simplified(R"(graph "g" {
    %x = input : bool[100]
    %a = slice(%x) {start_indices = [1], limit_indices = [91], strides = [9]}
    %b = slice(%a) {start_indices = [10], limit_indices = [10], strides = [5]}
    output "y" = %b
  })"),
              HasSubstr("slice(%x) {start_indices = [1], limit_indices = [1]}"));
}

TEST(SimplifyLayout, ALongChainIsOneSweep) {
  std::string text = "graph \"g\" {\n%x0 = input : f32[2,3]\n";
  constexpr int kLength = 20000;
  for (int i = 0; i < kLength; ++i) {
    absl::StrAppend(&text, "%x", i + 1, " = transpose(%x", i, ") {permutation = [1, 0]}\n");
  }
  absl::StrAppend(&text, "output \"y\" = %x", kLength, "\n}");
  EXPECT_EQ(Simplified(text), "graph \"g\" {\n  %x0 = input : f32[2,3]\n  output \"y\" = %x0\n}\n");
}

}  // namespace
}  // namespace tensord
