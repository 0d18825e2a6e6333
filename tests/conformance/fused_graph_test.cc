// The pass `fuse` on random graphs: the fused graph has the value of the graph that it was made of, bit for bit,
// because the reference evaluates a body as it evaluates any graph; and every body is one that a micro program
// expresses.

#include <gtest/gtest.h>

#include <vector>

#include "engine/fusion/build_micro_program.h"
#include "engine/fusion/fused_op.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/passes/algebra/eliminate_dead_code.h"
#include "engine/passes/fusion/fuse.h"
#include "engine/passes/lowering/resolve_sizes.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/property/random_case.h"

namespace tensord {
namespace {

// The micro programs of a graph without symbols; what none can be made of is a failure.
int CheckBodies(const Graph& graph) {
  int bodies = 0;
  for (const Node& node : graph.nodes()) {
    if (node.body == nullptr) continue;
    ++bodies;
    std::vector<ConcreteType> types;
    bool is_static = true;
    for (int32_t v = 0; v < node.body->num_values() && is_static; ++v) {
      is_static = node.body->type({v}).is_static();
      if (is_static) types.push_back(ToConcreteType(node.body->type({v})));
    }
    if (!is_static) continue;
    const auto micro = BuildMicroProgram(node.attrs, *node.body, types);
    EXPECT_TRUE(micro.ok()) << micro.status();
    if (!micro.ok()) continue;
    EXPECT_EQ(micro->results.size(), node.body->outputs().size());
    EXPECT_EQ(micro->tensors.size(), node.operands.size());
    EXPECT_NE(ToString(*micro), "");
  }
  return bodies;
}

TEST(FusedGraphs, HaveTheValueOfWhatTheyWereMadeOf) {
  int bodies = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const property::RandomCase random_case = property::MakeRandomCase({.max_nodes = 60, .size_choices = 2}, seed);
    Graph typed = random_case.graph;
    const auto guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << guards.status();
    Graph fused = typed;
    if (seed % 2 == 0) {
      ASSERT_TRUE(ResolveSizes(&fused, {}).ok());
      ASSERT_TRUE(EliminateDeadCode(&fused, {}).ok());
    }
    const auto changed = Fuse(&fused, {.fuses = true});
    ASSERT_TRUE(changed.ok()) << changed.status() << PrintGraph(typed);
    if (!*changed) continue;
    const absl::Status verified = VerifyTypes(fused);
    ASSERT_TRUE(verified.ok()) << verified << PrintGraph(fused);
    bodies += CheckBodies(fused);
    for (const std::vector<Literal>& arguments : random_case.arguments) {
      const auto want = EvaluateReference(typed, *guards, arguments);
      if (!want.ok()) continue;  // a guard does not hold
      const auto got = EvaluateReference(fused, {}, arguments);
      ASSERT_TRUE(got.ok()) << got.status() << PrintGraph(fused);
      ASSERT_EQ(got->size(), want->size());
      for (size_t i = 0; i < want->size(); ++i) {
        EXPECT_TRUE((*got)[i] == (*want)[i]) << "output " << i;
      }
    }
    ASSERT_FALSE(HasFailure()) << PrintGraph(typed) << PrintGraph(fused);
  }
  EXPECT_GT(bodies, 1000);
}

}  // namespace
}  // namespace tensord
