// Reductions that are refused over no element: sizes known at once, given by the caller's arguments, and decided by the
// run.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/refusal.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/literal_of.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

class RequiredElements : public testing::Test {
 protected:
  absl::StatusOr<std::vector<Literal>> Run(absl::string_view text, const std::vector<Literal>& arguments) {
    return CompileAndRun(ParsedGraph(text), {.backend = backend_.get()}, arguments);
  }

  void ExpectRefused(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{});
    EXPECT_EQ(detail.reason, "SHAPE_MISMATCH") << status;
    EXPECT_EQ(detail.node, "y") << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "there is nothing to reduce along axis 0")) << status;
  }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
};

TEST_F(RequiredElements, AreAskedOfSizesThatArgumentsSay) {
  constexpr absl::string_view kText =
      "graph \"g\" {\n  %x = input : f64[n,2]\n"
      "  %y = reduce(%x) {kind = max, dimensions = [0], requires_elements = true}\n  output \"y\" = %y\n}\n";
  ExpectRefused(Run(kText, {LiteralOf<double>({}, {0, 2})}).status());
  const auto results = Run(kText, {LiteralOf<double>({1, 5, -2, 3}, {2, 2})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].values<double>()[0], 5);
  EXPECT_EQ((*results)[0].values<double>()[1], 3);
}

TEST_F(RequiredElements, AreAskedOfSizesThatTheRunDecides) {
  constexpr absl::string_view kText =
      "graph \"g\" {\n  %x = input : i64[4]\n  %n = input : i64[]\n  %t = dynamic_truncate(%x, %n) {dimension = 0}\n"
      "  %y = reduce(%t) {kind = min, dimensions = [0], requires_elements = true}\n  output \"y\" = %y\n}\n";
  const Literal x = LiteralOf<int64_t>({4, 7, 1, 9});
  ExpectRefused(Run(kText, {x, Literal::Scalar<int64_t>(0)}).status());
  for (const auto& [count, least] : {std::pair{1, 4}, std::pair{2, 4}, std::pair{3, 1}}) {
    const auto results = Run(kText, {x, Literal::Scalar<int64_t>(count)});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0].values<int64_t>()[0], least);
  }
}

TEST_F(RequiredElements, AreNotAskedWhereTheFlagIsUnset) {
  const auto results =
      Run("graph \"g\" {\n  %x = input : f64[n]\n  %y = reduce(%x) {kind = max, dimensions = [0]}\n  output \"y\" = "
          "%y\n}\n",
          {LiteralOf<double>({})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_LT((*results)[0].values<double>()[0], 0);
}

}  // namespace
}  // namespace tensord
