#include "engine/passes/algebra/eliminate_common_subexpressions.h"

#include "absl/strings/str_cat.h"
#include "engine/passes/algebra/eliminate_dead_code.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord {
namespace {

// How many nodes are left.
size_t Left(absl::string_view text) {
  Graph graph = TypedGraph(text);
  EXPECT_TRUE(EliminateCommonSubexpressions(&graph, {}).ok());
  EXPECT_TRUE(EliminateDeadCode(&graph, {}).ok());
  EXPECT_TRUE(VerifyTypes(graph).ok());
  return graph.nodes().size();
}

// So many different slices of one value, each twice, with the second ones in the other order.
std::string SlicesTwice(int count) {
  std::string text = "graph \"g\" {\n%x = input : f32[1000]\n";
  for (int i = 0; i < 2 * count; ++i) {
    const int start = i < count ? i : 2 * count - 1 - i;
    absl::StrAppend(&text, "%s", i, " = slice(%x) {start_indices = [", start, "], limit_indices = [", start + 1,
                    "]}\n");
  }
  for (int i = 0; i < 2 * count; ++i) absl::StrAppend(&text, "output \"s", i, "\" = %s", i, "\n");
  return text + "}";
}

TEST(EliminateCommonSubexpressions, ReadersOfOneValueHoweverMany) {
  for (const int count : {1, 2, 7, 8, 9, 10, 30, 900}) {
    EXPECT_EQ(Left(SlicesTwice(count)), static_cast<size_t>(count)) << count;
  }
}

TEST(EliminateCommonSubexpressions, CommutativeOperandsAmongManyReaders) {
  std::string text = "graph \"g\" {\n";
  constexpr int kCount = 20;
  for (int i = 0; i <= kCount; ++i) absl::StrAppend(&text, "%x", i, " = input : f32[3]\n");
  for (int i = 0; i < kCount; ++i) absl::StrAppend(&text, "%a", i, " = add(%x", i, ", %x", kCount, ")\n");
  for (int i = 0; i < kCount; ++i) absl::StrAppend(&text, "%b", i, " = add(%x", kCount, ", %x", i, ")\n");
  for (int i = 0; i < kCount; ++i) absl::StrAppend(&text, "%c", i, " = subtract(%x", kCount, ", %x", i, ")\n");
  for (const char* name : {"a", "b", "c"}) {
    for (int i = 0; i < kCount; ++i) absl::StrAppend(&text, "output \"", name, i, "\" = %", name, i, "\n");
  }
  EXPECT_EQ(Left(text + "}"), 2u * kCount);
}

TEST(EliminateCommonSubexpressions, EqualNodesInAChainMeetInOneSweep) {
  std::string text = "graph \"g\" {\n%x = input : f32[3]\n%a0 = exp(%x)\n%b0 = exp(%x)\n";
  constexpr int kLength = 5000;
  for (int i = 1; i <= kLength; ++i) {
    for (const char* name : {"%a", "%b"}) absl::StrAppend(&text, name, i, " = multiply(%x, ", name, i - 1, ")\n");
  }
  absl::StrAppend(&text, "output \"a\" = %a", kLength, "\noutput \"b\" = %b", kLength, "\n}");
  EXPECT_EQ(Left(text), 1u + kLength);
}

}  // namespace
}  // namespace tensord
