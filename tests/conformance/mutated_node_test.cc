// Nodes that the verifier lets through run, and refusals are in the op's table: valid nodes of every op, changed at
// random.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"
#include "engine/ir/op_refusals.h"
#include "engine/ir/printer.h"
#include "engine/ir/size_binding.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/mutated_node.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/testlib/runs/hidden_memory_backend.h"

namespace tensord {
namespace {

constexpr int64_t kMaxElements = 20'000;  // what a mutant may take to be run

bool IsInTable(const OpDef& op, absl::string_view reason) {
  const auto has = [reason](const std::vector<OpRefusal>& refusals) {
    return std::any_of(refusals.begin(), refusals.end(),
                       [reason](const OpRefusal& refusal) { return InfoOf(refusal.reason).id == reason; });
  };
  return has(RefusalsOf(op)) || has(CommonRefusals());
}

// The cases of each op that are small enough to run by the thousand.
std::vector<std::vector<NodeCase>> SmallCases() {
  std::map<const OpDef*, std::vector<NodeCase>> by_op;
  for (NodeCase& node_case : CoreOpCases()) {
    const bool is_small = std::all_of(node_case.operands.begin(), node_case.operands.end(),
                                      [](const ConcreteType& type) { return type.num_elements() <= 200; });
    if (is_small) by_op[node_case.op].push_back(std::move(node_case));
  }
  std::vector<std::vector<NodeCase>> cases;
  for (const OpDef& op : CoreOps()) {
    // Elementwise ops share one rule: fewer of each will do.
    const int weight = op.op_class == OpClass::kPlain ? 4 : 1;
    for (int i = 0; i < weight; ++i) cases.push_back(by_op[&op]);
  }
  return cases;
}

// A refusal that the op's table has, of the node "n".
std::string Unexpected(const OpDef& op, const absl::Status& status) {
  const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{.reason = "(no reason)"});
  if (!IsInTable(op, detail.reason)) return absl::StrCat("is refused outside of the table: ", status.ToString());
  return "";
}

// Tells whether every way to compute the op gives the same bits.
bool IsExact(const OpDef& op, DType result) {
  if ((kIntegers | kBoolOnly).Contains(result)) return true;
  return op.op_class == OpClass::kPlain && !Is(op, CoreOp::kReduce) && !Is(op, CoreOp::kDotGeneral);
}

class MutatedNodes : public testing::TestWithParam<BackendUnderTest> {
 protected:
  MutatedNodes() {
    settings_ = {{.backend = backend_.get()}, {.backend = backend_.get(), .row_major = true}};
    if (!GetParam().compiles) settings_.push_back({.backend = &hidden_, .row_major = true});
  }

  // Returns the fault of a mutant, empty if there is none.
  std::string Check(const OpDef& op, const MutatedNode& node, Values values, std::mt19937_64* random) {
    Graph typed = node.graph;
    const absl::StatusOr<std::vector<ShapeGuard>> guards = InferTypes(&typed);
    if (!guards.ok()) {
      ++refused_;
      const std::optional<RefusalDetail> detail = DetailOf(guards.status());
      if (!detail.has_value() || detail->op != op.name) return "is refused without its op's name";
      return Unexpected(op, guards.status());
    }
    const std::vector<ConcreteType> types = ArgumentTypes(node);
    std::vector<const TensorType*> inputs;
    for (const GraphInput& input : typed.inputs()) inputs.push_back(&input.type);
    const absl::StatusOr<SizeBinding> binding = SizeBinding::Create(inputs, types);
    if (!binding.ok()) return absl::StrCat("does not bind its own arguments: ", binding.status().ToString());
    const TensorType& type = typed.type(typed.outputs()[0].value);
    const bool decided_by_run =
        std::any_of(type.shape.begin(), type.shape.end(), [](const Dim& dim) { return dim.extent != Extent::kExact; });
    const absl::StatusOr<ConcreteType> result = binding->Resolve(type);
    const auto is_large = [](const ConcreteType& type) { return type.num_elements() > kMaxElements; };
    if ((result.ok() && is_large(*result)) || std::any_of(types.begin(), types.end(), is_large)) {
      ++too_large_;
      return "";
    }
    std::vector<Literal> arguments;
    for (const ConcreteType& type : types) arguments.push_back(RandomLiteral(type, values, random));
    const absl::StatusOr<std::vector<Literal>> want = EvaluateReference(typed, *guards, arguments);
    for (const CompiledRunOptions& options : settings_) {
      const std::string problem = CheckRun(op, node, options, decided_by_run, types, arguments, want);
      if (!problem.empty()) return absl::StrCat(options.row_major ? "row-major " : "", problem);
    }
    return "";
  }

  // With a size that the run decides there is nothing to bind before it.
  std::string CheckRun(const OpDef& op, const MutatedNode& node, const CompiledRunOptions& options, bool decided_by_run,
                       std::vector<ConcreteType> types, const std::vector<Literal>& arguments,
                       const absl::StatusOr<std::vector<Literal>>& want) {
    const CompileSettings settings{.device = "test:0", .row_major = options.row_major};
    const absl::StatusOr<CompiledProgramPtr> program =
        Compile(node.graph, settings, MakeProgramKey(node.graph, settings).fingerprint, options.backend);
    if (!program.ok()) return absl::StrCat("does not compile: ", program.status().ToString());
    if (options.row_major) {
      for (ConcreteType& type : types) std::reverse(type.shape.begin(), type.shape.end());
    }
    const absl::Status bound = decided_by_run ? absl::OkStatus() : (*program)->Bind(types).status();
    if (!bound.ok()) {
      ++guarded_;
      if (node.sizes.empty()) return absl::StrCat("has sizes that are known, and binding refuses: ", bound.ToString());
      if (want.ok()) return absl::StrCat("is refused by binding, not by the reference: ", bound.ToString());
      return Unexpected(op, bound);
    }
    const absl::StatusOr<std::vector<Literal>> got = RunCompiled(**program, arguments);
    if (!got.ok()) return absl::StrCat("fails when it runs: ", got.status().ToString());
    if (!want.ok()) return absl::StrCat("runs, though the reference refuses: ", want.status().ToString());
    ++ran_;
    return IsExact(op, (*want)[0].dtype()) ? Difference((*got)[0], (*want)[0], {}) : "";
  }

  const std::unique_ptr<Backend> backend_ = GetParam().make();
  HiddenMemoryBackend hidden_;
  std::vector<CompiledRunOptions> settings_;
  int64_t refused_ = 0, too_large_ = 0, guarded_ = 0, ran_ = 0;
};

TEST_P(MutatedNodes, AreRefusedByTheTableOrRun) {
  const uint64_t mutants = GetParam().compiles ? 1'500 : 40'000;
  std::vector<std::vector<NodeCase>> cases = SmallCases();
  int failures = 0;
  for (uint64_t seed = 0; seed < mutants && failures < 20; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<NodeCase>& of_op = cases[random() % cases.size()];
    ASSERT_FALSE(of_op.empty());
    const NodeCase& node_case = of_op[random() % of_op.size()];
    const MutatedNode node = MutateNode(node_case, &random);
    const std::string problem = Check(*node_case.op, node, seed % 2 == 0 ? Values::kEdges : Values::kModest, &random);
    if (problem.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << " " << problem << "\n"
                  << PrintGraph(node.graph) << "sizes: " << absl::StrJoin(node.sizes, ", ", absl::PairFormatter("="));
  }
  // The mutations reach every way out, often.
  const int64_t tenth = static_cast<int64_t>(mutants) / 10;
  EXPECT_GT(refused_, tenth);
  EXPECT_GT(guarded_, tenth / 10);
  EXPECT_GT(ran_, tenth);
  RecordProperty("refused", absl::StrCat(refused_));
  RecordProperty("too_large", absl::StrCat(too_large_));
  RecordProperty("guarded", absl::StrCat(guarded_));
  RecordProperty("ran", absl::StrCat(ran_));
}

INSTANTIATE_TEST_SUITE_P(Backends, MutatedNodes, testing::ValuesIn(kCpuAndCuda), NameOfBackend());

TEST(Declarations, RefuseEveryOtherDType) {
  for (const std::vector<NodeCase>& of_op : SmallCases()) {
    const NodeCase& valid = of_op.front();
    const OpDef& op = *valid.op;
    for (DType d : kAllDTypes) {
      if (op.dtypes.Contains(d)) continue;
      NodeCase wrong = valid;
      for (ConcreteType& operand : wrong.operands) {
        if (operand.dtype == valid.operands[0].dtype) operand.dtype = d;
      }
      for (size_t i = 0; i < op.attrs.size(); ++i) {
        if (op.attrs[i].kind != AttrKind::kType) continue;
        TensorType type = *std::get<SharedType>(wrong.attrs.at(i));
        type.dtype = d;
        wrong.attrs.Set(i, std::move(type));
      }
      Graph graph = GraphOf(wrong);
      const std::optional<RefusalDetail> detail = DetailOf(InferTypes(&graph).status());
      ASSERT_TRUE(detail.has_value()) << op.name << " of " << Name(d);
      EXPECT_EQ(detail->reason, InfoOf(Refusal::kDtypeUnsupported).id) << op.name << " of " << Name(d);
      EXPECT_EQ(detail->op, op.name);
    }
  }
}

}  // namespace
}  // namespace tensord
