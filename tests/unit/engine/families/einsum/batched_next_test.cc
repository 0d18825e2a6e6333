#include "engine/families/einsum/batched_next.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BatchedNextTest, IsWhatBothOperandsOfTheNextStepHaveAndItsResultToo) {
  // (0 2), then with (0 2 3) to (0 3): 0 stays, 2 is summed. Then with (0 3) to the output.
  const std::vector<std::vector<int>> operands = {{0, 1}, {1, 2}, {0, 2, 3}, {0, 3}};
  const std::vector<int64_t> sizes(4, 2);
  const std::vector<int> output = {0};
  const ContractionNetwork network(operands, output, sizes);
  EXPECT_THAT(LabelsBatchedNext(network, {{0, 1}, {4, 2}, {5, 3}}),
              ElementsAre(ElementsAre(0), ElementsAre(0), IsEmpty()));
}

TEST(BatchedNextTest, LooksAtTheStepThatReadsAndNotAtTheNextInOrder) {
  const std::vector<std::vector<int>> operands = {{0, 1}, {1, 2}, {3, 4}, {4, 5}, {3, 5, 0, 2}};
  const std::vector<int64_t> sizes(6, 2);
  const std::vector<int> output = {3};
  const ContractionNetwork network(operands, output, sizes);
  // (0 2), then (3 5), then (3 5) with (3 5 0 2) to (3 0 2), and with (0 2) to (3).
  EXPECT_THAT(LabelsBatchedNext(network, {{0, 1}, {2, 3}, {6, 4}, {5, 7}}),
              ElementsAre(IsEmpty(), ElementsAre(3), IsEmpty(), IsEmpty()));
}

// Labels past the first word of a set; no step at all.
TEST(BatchedNextTest, TakesAnyNumberOfLabelsAndSteps) {
  const std::vector<std::vector<int>> operands = {{68, 69}, {69, 1}, {68, 1, 2}};
  const std::vector<int64_t> sizes(70, 2);
  const std::vector<int> output = {68, 2};
  const ContractionNetwork network(operands, output, sizes);
  EXPECT_THAT(LabelsBatchedNext(network, {{0, 1}, {3, 2}}), ElementsAre(ElementsAre(68), IsEmpty()));
  EXPECT_THAT(LabelsBatchedNext(ContractionNetwork(std::vector<std::vector<int>>{{0}}, output, sizes), {}), IsEmpty());
}

}  // namespace
}  // namespace tensord
