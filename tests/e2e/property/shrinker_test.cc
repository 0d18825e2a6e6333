// The shrinker, on planted failures.
#include "tests/testlib/property/shrinker.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "engine/ops/core_ops.h"
#include "tests/testlib/property/random_case.h"

namespace tensord::property {
namespace {

bool Has(const Graph& graph, CoreOp op) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [op](const Node& n) { return Is(*n.op, op); });
}

FailingCase CaseOf(uint64_t seed) {
  RandomCase random_case = MakeRandomCase({}, seed);
  return {std::move(random_case.graph), std::move(random_case.arguments[0])};
}

absl::Time Soon() { return absl::Now() + absl::Minutes(5); }

TEST(ShrinkerTest, TwoNodesRemainOfAGraphThatNeedsTwo) {
  const StillFails planted = [](const FailingCase& c) {
    return Has(c.graph, CoreOp::kTranspose) && Has(c.graph, CoreOp::kReduce);
  };
  int shrunk = 0;
  for (uint64_t seed = 0; shrunk < 5; ++seed) {
    FailingCase failing = CaseOf(seed);
    if (!planted(failing) || failing.graph.nodes().size() < 12) continue;
    // The two may be dead, which nothing smaller shows.
    const FailingCase small = Shrink(failing, planted, Soon());
    if (small.graph.nodes().size() == failing.graph.nodes().size()) continue;
    ++shrunk;
    EXPECT_TRUE(planted(small));
    EXPECT_EQ(small.graph.nodes().size(), 2) << "seed " << seed << "\n" << ToString(small);
    EXPECT_LE(small.graph.outputs().size(), 2) << ToString(small);
    for (const Literal& argument : small.arguments) {
      EXPECT_LE(argument.num_elements(), 1) << ToString(small);
      EXPECT_TRUE(std::all_of(argument.bytes().begin(), argument.bytes().end(), [](char c) { return c == 0; }))
          << ToString(small);
    }
  }
}

TEST(ShrinkerTest, SymbolsBecomeNumbersUnlessTheyMatter) {
  const auto symbolic = [](const FailingCase& c) {
    return std::any_of(c.graph.inputs().begin(), c.graph.inputs().end(),
                       [](const GraphInput& input) { return !input.type.is_static(); });
  };
  uint64_t seed = 0;
  while (!symbolic(CaseOf(seed)) || CaseOf(seed).graph.nodes().size() < 5) ++seed;
  EXPECT_FALSE(symbolic(Shrink(
      CaseOf(seed), [](const FailingCase&) { return true; }, Soon())));
  EXPECT_TRUE(symbolic(Shrink(CaseOf(seed), symbolic, Soon())));
}

TEST(ShrinkerTest, ValuesThatMatterStay) {
  // Fails while the first argument has an element that is not zero.
  const StillFails planted = [](const FailingCase& c) {
    return !c.arguments.empty() && std::any_of(c.arguments[0].bytes().begin(), c.arguments[0].bytes().end(),
                                               [](char byte) { return byte != 0; });
  };
  uint64_t seed = 0;
  while (!planted(CaseOf(seed)) || CaseOf(seed).arguments[0].num_elements() < 8) ++seed;
  const FailingCase small = Shrink(CaseOf(seed), planted, Soon());
  ASSERT_FALSE(small.arguments.empty());
  EXPECT_TRUE(planted(small));
  const size_t element = static_cast<size_t>(SizeOf(small.arguments[0].dtype()));
  int nonzero = 0;
  for (size_t i = 0; i < small.arguments[0].bytes().size(); i += element) {
    const auto bytes = small.arguments[0].bytes().substr(i, element);
    nonzero += std::any_of(bytes.begin(), bytes.end(), [](char byte) { return byte != 0; });
  }
  EXPECT_EQ(nonzero, 1) << ToString(small);
}

TEST(ShrinkerTest, EndsInTime) {
  uint64_t seed = 0;
  while (CaseOf(seed).graph.nodes().size() < 10) ++seed;
  int asked = 0;
  const FailingCase failing = CaseOf(seed);
  const FailingCase small = Shrink(
      failing,
      [&asked](const FailingCase&) {
        ++asked;
        return true;
      },
      absl::InfinitePast());
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(small.graph.nodes().size(), failing.graph.nodes().size());
}

}  // namespace
}  // namespace tensord::property
