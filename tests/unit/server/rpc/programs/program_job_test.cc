#include "server/rpc/programs/program_job.h"

#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord::server {
namespace {

TEST(ProgramJobTest, ADerivativeIsChargedForEachCopyOfAConstant) {
  const Graph graph = ParsedGraph(R"(graph "g" {
    %x = input : f64[3]
    %c = constant() {value = f64[3] [1, 2, 3]}
    %y = multiply(%x, %c)
    output "y" = %y
  })");
  EXPECT_EQ(BytesToCompile(graph), 0);
  EXPECT_EQ(BytesToDifferentiate(graph, false), 2 * 24);
  EXPECT_EQ(BytesToDifferentiate(graph, true), 3 * 24);
}

}  // namespace
}  // namespace tensord::server
