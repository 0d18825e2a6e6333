// Values of the highest rank that the verifier lets through, in every kernel that walks axes.

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/reference/evaluator.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

std::string Repeated(absl::string_view text) {
  return absl::StrJoin(std::vector<absl::string_view>(kMaxRank, text), ", ");
}

// A graph on %d and %t, of 64 axes: four of size 2 spread among axes of size 1.
std::string Text(const std::string& last) {
  std::vector<std::string> factor(16, "1"), order;
  factor[3] = "2";
  for (int64_t axis = 0; axis < kMaxRank; ++axis) order.push_back(absl::StrCat((axis * 27 + 5) % kMaxRank));
  const std::string type = absl::StrCat("i64[", absl::StrJoin(factor, ","), "]");
  return absl::StrCat("graph \"g\" {\n  %a = input : ", type, "\n  %b = input : ", type,
                      "\n  %v = input : i64[]\n  %c = dot_general(%a, %b)\n  %d = dot_general(%c, %c)\n",
                      "  %t = transpose(%d) {permutation = [", absl::StrJoin(order, ", "), "]}\n", "  %y = ", last,
                      "\n  output \"y\" = %y\n}\n");
}

class HighRanks : public testing::TestWithParam<BackendUnderTest> {};

TEST_P(HighRanks, Run) {
  const std::unique_ptr<Backend> backend = GetParam().make();
  std::mt19937_64 random(1);
  const std::string zeros = Repeated("0"), ones = Repeated("1");
  const std::string lasts[] = {
      "multiply(%t, %t)",
      "reverse(%t) {dimensions = [0, 13, 63]}",
      "reduce(%t) {kind = sum, dimensions = [1, 2, 3, 40]}",
      "concatenate(%t, %t, %t) {dimension = 63}",
      absl::StrCat("pad(%t, %v) {edge_padding_low = [", zeros, "], edge_padding_high = [", zeros,
                   "], interior_padding = [", ones, "]}"),
      absl::StrCat("slice(%t) {start_indices = [", zeros, "], limit_indices = [", ones, "]}"),
      "reshape(%t) {shape = [16]}",
      "reshape(%t) {shape = [16], order = row_major}",
  };
  for (const std::string& last : lasts) {
    absl::StatusOr<Graph> graph = ParseGraph(Text(last), CoreRegistry());
    ASSERT_TRUE(graph.ok()) << graph.status();
    Graph typed = *graph;
    const auto guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << last << ": " << guards.status();
    std::vector<Literal> arguments;
    for (const GraphInput& input : typed.inputs()) {
      arguments.push_back(RandomLiteral(ToConcreteType(input.type), Values::kModest, &random));
    }
    const auto want = EvaluateReference(typed, *guards, arguments);
    ASSERT_TRUE(want.ok()) << last << ": " << want.status();
    for (const bool row_major : {false, true}) {
      const auto got = CompileAndRun(*graph, {.backend = backend.get(), .row_major = row_major}, arguments);
      ASSERT_TRUE(got.ok()) << last << ": " << got.status();
      EXPECT_EQ(Difference((*got)[0], (*want)[0], {}), "") << last;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, HighRanks, testing::ValuesIn(kCpuAndCuda), NameOfBackend());

}  // namespace
}  // namespace tensord
