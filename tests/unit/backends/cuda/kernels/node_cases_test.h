#ifndef TENSORD_TESTS_UNIT_BACKENDS_CUDA_KERNELS_NODE_CASES_TEST_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CUDA_KERNELS_NODE_CASES_TEST_H_

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/graphs/node_case.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {

// Ops by themselves on the host CUDA device, beside the reference evaluator.
class NodeCasesTest : public CudaTest {
 protected:
  std::unique_ptr<Backend> Made() {
    auto backend =
        MakeCudaBackend({.libraries = libraries_.get(), .tensor_bytes = 512 * kMiB, .host_memory = host_memory_});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }

  // Returns up to `most` cases of each of these ops on each of these dtypes, spread over all there are.
  static std::vector<NodeCase> CasesOf(std::initializer_list<CoreOp> ops, DTypeSet dtypes, size_t most) {
    std::map<std::pair<const OpDef*, DType>, std::vector<NodeCase>> all;
    for (NodeCase& node_case : CoreOpCases()) {
      const auto is_op = [&](CoreOp op) { return Is(*node_case.op, op); };
      if (!std::any_of(ops.begin(), ops.end(), is_op) || !dtypes.Contains(node_case.operands[0].dtype)) continue;
      all[{node_case.op, node_case.operands[0].dtype}].push_back(std::move(node_case));
    }
    std::vector<NodeCase> chosen;
    for (auto& [key, cases] : all) {
      const size_t step = std::max<size_t>(1, (cases.size() + most - 1) / most);
      for (size_t i = step / 2; i < cases.size(); i += step) chosen.push_back(std::move(cases[i]));
    }
    return chosen;
  }

  // Runs cases, each on values of that kind, and compares.
  void ExpectAsReference(const std::vector<NodeCase>& cases, Values values, const Tolerance& tolerance = {}) {
    const std::unique_ptr<Backend> backend = Made();
    std::mt19937_64 random(7);
    for (const NodeCase& node_case : cases) {
      std::vector<Literal> arguments;
      for (const ConcreteType& type : node_case.operands) arguments.push_back(RandomLiteral(type, values, &random));
      tensord::Graph graph = GraphOf(node_case);
      auto guards = InferTypes(&graph);
      ASSERT_TRUE(guards.ok()) << node_case.name << ": " << guards.status();
      const auto want = EvaluateReference(graph, *guards, arguments);
      ASSERT_TRUE(want.ok()) << node_case.name << ": " << want.status();
      const auto got = CompileAndRun(GraphOf(node_case), {.backend = backend.get()}, arguments);
      ASSERT_TRUE(got.ok()) << node_case.name << ": " << got.status();
      EXPECT_EQ(Difference((*got)[0], (*want)[0], tolerance), "") << node_case.name;
    }
    EXPECT_FALSE(cases.empty());
  }

  const std::shared_ptr<HostBufferPool> host_memory_ = HostBufferPool::Create(int64_t{1} << 32, 0);
};

// Copies of ops do not look at elements: a dtype for each size.
inline constexpr DTypeSet kSizes = DTypeSet{DType::kBool, DType::kF16, DType::kI32, DType::kC64, DType::kC128};

}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CUDA_KERNELS_NODE_CASES_TEST_H_
