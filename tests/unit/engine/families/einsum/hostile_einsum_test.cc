// Einsums that somebody writes to keep the compiler busy: each ends soon, planned or refused. The bars are about stalls
// of minutes.

#include <chrono>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/families/all_families.h"
#include "engine/ir/graph.h"
#include "engine/ir/verifier.h"
#include "engine/passes/lowering/expand_families.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

// Planned or refused, as the compiler does it.
absl::Status Plan(const Lists& operands, std::vector<int64_t> output, const DimExpr& size, Lists path = {},
                  int64_t optimizer = 0) {
  const OpDef* const op = FamilyRegistry().Find("tensord.einsum.v1.Einsum");
  Graph graph;
  Node node{.name = "y", .op = op, .attrs = Attributes(op->attrs)};
  for (size_t i = 0; i < operands.size(); ++i) {
    TensorType type{.dtype = DType::kF32};
    for (size_t axis = 0; axis < operands[i].size(); ++axis) type.shape.push_back(size);
    node.operands.push_back(graph.AddInput(absl::StrCat("x", i), std::move(type)));
  }
  node.attrs.Set("operands", operands).Set("output", Lists{std::move(output)}).Set("path", std::move(path));
  node.attrs.Set("optimizer", optimizer);
  graph.AddOutput("y", graph.AddNode(std::move(node)));
  const auto start = std::chrono::steady_clock::now();
  absl::Status status = InferTypes(&graph).status();
  if (status.ok()) status = ExpandFamilies(&graph);
  EXPECT_LE(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  return status;
}

std::string LimitOf(const absl::Status& status) { return DetailOf(status).value_or(RefusalDetail{}).limit; }

Lists RandomOperands(int operands, int64_t labels, int rank) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> label(0, labels - 1);
  Lists all;
  for (int i = 0; i < operands; ++i) {
    all.emplace_back();
    for (int k = 0; k < rank; ++k) all.back().push_back(label(random));
  }
  return all;
}

TEST(HostileEinsumTest, IntermediatesOfTooManyAxesAreRefused) {
  for (const int64_t optimizer : {0, 1, 3}) {  // auto, greedy, left to right
    SCOPED_TRACE(optimizer);
    EXPECT_EQ(LimitOf(Plan(RandomOperands(16'000, 16'000, 2), {}, 2, {}, optimizer)), "value_rank");
    EXPECT_EQ(LimitOf(Plan(RandomOperands(4'000, 16'000, 16), {}, 2, {}, optimizer)), "value_rank");
  }
  // Each label's two operands are as far apart as can be.
  Lists apart;
  for (int half = 0; half < 2; ++half) {
    for (int64_t i = 0; i < 8'000; ++i) apart.push_back({i});
  }
  EXPECT_EQ(LimitOf(Plan(apart, {}, 2, {}, 3)), "value_rank");
  EXPECT_EQ(LimitOf(Plan(apart, {}, 1, {}, 3)), "value_rank");
  EXPECT_TRUE(Plan(apart, {}, 2).ok());
}

TEST(HostileEinsumTest, LongChainsAndManyOfTheSame) {
  Lists chain;
  for (int64_t i = 0; i < 16'000; ++i) chain.push_back({i, i + 1});
  for (const int64_t optimizer : {0, 1, 3}) {
    SCOPED_TRACE(optimizer);
    EXPECT_TRUE(Plan(chain, {0, 16'000}, 2, {}, optimizer).ok());
    EXPECT_TRUE(Plan(Lists(16'000), {}, 2, {}, optimizer).ok());
    EXPECT_TRUE(Plan(Lists(16'000, {0}), {0}, 2, {}, optimizer).ok());
  }
  EXPECT_EQ(LimitOf(Plan(Lists(17'000), {}, 2)), "einsum_operands");
  EXPECT_TRUE(Plan(RandomOperands(16, 128, 16), {}, 2, {}, 2).ok()) << "optimal";
}

TEST(HostileEinsumTest, PathsOfManyStepsThatDoNothing) {
  const Lists scalars(16'000);
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, Plan(scalars, {}, 2, Lists(1'500'000, {0})).code());
  Lists path;
  for (int i = 0; i < 15'999; ++i) path.push_back({0, 1});
  EXPECT_TRUE(Plan(scalars, {}, 2, path).ok());
  std::vector<int64_t> at_once;
  for (int64_t i = 0; i < 16'000; ++i) at_once.push_back(i);
  EXPECT_TRUE(Plan(scalars, {}, 2, {at_once}).ok());
  at_once.back() = 0;
  EXPECT_EQ(Plan(scalars, {}, 2, {at_once}).code(), absl::StatusCode::kInvalidArgument);
  for (const int64_t position :
       {int64_t{-1}, int64_t{16'000}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(Plan(scalars, {}, 2, {{0, position}}).code(), absl::StatusCode::kInvalidArgument) << position;
  }
}

TEST(HostileEinsumTest, SizesOfNothingOneAndTheLargest) {
  Lists shared;
  for (int64_t i = 0; i < 1'000; ++i) shared.push_back({i % 3});
  for (const int64_t size : {int64_t{0}, int64_t{1}, (int64_t{1} << 48) - 1}) {
    SCOPED_TRACE(size);
    EXPECT_TRUE(Plan(shared, {0}, size).ok());
    // An intermediate may be larger than any tensor, and is refused then.
    EXPECT_EQ(Plan(shared, {0, 1}, size).ok(), size < 2);
    EXPECT_EQ(Plan({{0}, {1}}, {0, 1}, size).ok(), size < 2);
  }
}

TEST(HostileEinsumTest, LabelsThatRepeat) {
  EXPECT_EQ(LimitOf(Plan({{0}}, std::vector<int64_t>(1'000'000, 0), 2)), "value_rank");
  EXPECT_TRUE(Plan({{0}}, std::vector<int64_t>(64, 0), 1).ok());
  const std::vector<int64_t> all(64, 0);
  EXPECT_TRUE(Plan({all, all, all}, {0}, 1).ok());
  EXPECT_TRUE(Plan({{std::numeric_limits<int64_t>::max()}}, {std::numeric_limits<int64_t>::max()}, 2).ok());
  EXPECT_FALSE(Plan({{-1}}, {-1}, 2).ok());
  EXPECT_FALSE(Plan({{std::numeric_limits<int64_t>::min()}}, {0}, 2).ok());
}

}  // namespace
}  // namespace tensord
