// Every op of the core with the accesses of its kernels checked.
#include <map>
#include <utility>

#include "tests/unit/backends/cuda/kernels/node_cases_test.h"

namespace tensord::cuda {
namespace {

class CheckedOpsTest : public NodeCasesTest {
 protected:
  // Returns the largest small case of each op on dtypes of each size and kind.
  static std::vector<NodeCase> LargestSmallCases() {
    constexpr int64_t kMostElements = 3000;
    constexpr DTypeSet kDTypes = {DType::kBool, DType::kI32, DType::kF16, DType::kF32, DType::kC128};
    const auto elements = [](const NodeCase& node_case) {
      int64_t all = 0;
      for (const ConcreteType& type : node_case.operands) all += type.num_elements();
      return all;
    };
    std::map<std::pair<const OpDef*, DType>, NodeCase> largest;
    for (NodeCase& node_case : CoreOpCases()) {
      const DType dtype = node_case.operands.empty() ? DType::kInvalid : node_case.operands.back().dtype;
      if (dtype != DType::kInvalid && !kDTypes.Contains(dtype)) continue;
      if (elements(node_case) > kMostElements) continue;
      const auto [it, is_new] = largest.try_emplace({node_case.op, dtype}, node_case);
      if (!is_new && elements(node_case) > elements(it->second)) it->second = std::move(node_case);
    }
    std::vector<NodeCase> cases;
    for (auto& [kind, node_case] : largest) cases.push_back(std::move(node_case));
    return cases;
  }
};

TEST_F(CheckedOpsTest, NoAccessIsOutOfBoundsAndNoneRaces) {
  hostCudaSet("CHECK", "1");
  const long before = hostCudaProblems();
  // Values are BackendSuite's to compare, within bounds of their own.
  ExpectAsReference(LargestSmallCases(), Values::kIntegers, {.ulps = 16, .norm_relative = 1e-2});
  EXPECT_EQ(hostCudaProblems(), before);
  hostCudaSet("CHECK", "");
}

}  // namespace
}  // namespace tensord::cuda
