// The same bits from run to run, for any number of threads, and wherever the arguments lie in memory; on a CUDA device
// however late its streams are, and in whatever order the threads of a block come.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/blas.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/large_node_case.h"
#include "tests/testlib/graphs/node_case.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

constexpr int kMaxThreads = 4;
constexpr int64_t kMisalignment = 8;  // the least that an import takes as it is

class SameBits : public testing::TestWithParam<BackendUnderTest> {
 protected:
  SameBits() {
    if (GetParam().compiles) {
      for (int i = 0; i < 2; ++i) backends_.push_back(GetParam().make());
      return;
    }
    for (int threads = 1; threads <= kMaxThreads; ++threads) {
      backends_.push_back(MakeCpuBackend({.threads = threads}));
    }
  }
  void TearDown() override {
    for (const char* setting : {"ORDER", "DELAY_US", "SEED"}) SetHostCuda(setting, "");
  }

  // Changes what a device may do as it likes.
  void Vary() {
    if (!GetParam().compiles) return;
    SetHostCuda("ORDER", runs_ % 2 == 0 ? "forward" : "reverse");
    SetHostCuda("DELAY_US", runs_ % 3 == 0 ? "0" : "100");
    SetHostCuda("SEED", absl::StrCat(runs_ + 1));
  }

  // Returns the cases that a backend has time for: all, or of each op on each dtype so many, spread over all there are.
  std::vector<NodeCase> Chosen(std::vector<NodeCase> cases, size_t most_of_a_kind) const {
    if (!GetParam().compiles) return cases;
    std::map<std::pair<const OpDef*, DType>, std::vector<NodeCase>> kinds;
    for (NodeCase& node_case : cases) {
      const DType dtype = node_case.operands.empty() ? DType::kInvalid : node_case.operands[0].dtype;
      kinds[{node_case.op, dtype}].push_back(std::move(node_case));
    }
    std::vector<NodeCase> chosen;
    for (auto& [kind, of_kind] : kinds) {
      const size_t step = (of_kind.size() + most_of_a_kind - 1) / most_of_a_kind;
      for (size_t i = 0; i < of_kind.size(); i += step) chosen.push_back(std::move(of_kind[i]));
    }
    return chosen;
  }

  // Returns the difference, or nothing.
  std::string Difference(const NodeCase& node_case, const std::vector<Literal>& arguments) {
    std::optional<std::string> want;
    for (size_t b = 0; b < backends_.size(); ++b) {
      const CompileSettings settings{.device = "test:0"};
      Graph graph = GraphOf(node_case);
      const ProgramKey key = MakeProgramKey(graph, settings);
      const auto program = Compile(std::move(graph), settings, key.fingerprint, backends_[b].get());
      if (!program.ok()) return absl::StrCat(program.status().ToString());
      for (const int64_t misalignment : {int64_t{0}, int64_t{0}, kMisalignment}) {
        Vary();
        const auto results = RunCompiled(**program, arguments, misalignment);
        ++runs_;
        if (results.ok()) ++ok_runs_;
        // A run refused because of its arguments must always be refused.
        const std::string bits = results.ok() ? std::string((*results)[0].bytes()) : results.status().ToString();
        if (!want.has_value()) want = bits;
        if (bits != *want) return absl::StrCat("other bits by backend ", b, ", misaligned by ", misalignment);
      }
    }
    return "";
  }

  void CheckAll(const std::vector<NodeCase>& cases, const std::vector<Values>& all_values) {
    std::mt19937_64 random(41);
    int64_t failed = 0;
    for (const NodeCase& node_case : cases) {
      for (const Values values : all_values) {
        std::vector<Literal> arguments;
        for (const ConcreteType& type : node_case.operands) arguments.push_back(RandomLiteral(type, values, &random));
        const std::string difference = Difference(node_case, arguments);
        if (!difference.empty() && ++failed <= 40) ADD_FAILURE() << node_case.name << ": " << difference;
      }
    }
    EXPECT_EQ(failed, 0);
    EXPECT_GT(10 * ok_runs_, 9 * runs_);
    EXPECT_GT(runs_, 0);
  }

  std::vector<std::unique_ptr<Backend>> backends_;
  int64_t runs_ = 0;
  int64_t ok_runs_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Backends, SameBits, testing::ValuesIn(kCpuAndCuda), NameOfBackend());

TEST_P(SameBits, OfEveryOpOnEveryDtype) { CheckAll(Chosen(CoreOpCases(), 3), {Values::kModest, Values::kEdges}); }

TEST_P(SameBits, OfWhatIsCutIntoParts) {
  if (const auto outdated = cpu::FindOutdatedBlasCore(); outdated.has_value() && !GetParam().compiles) {
    GTEST_SKIP() << "OpenBLAS's kernels for a " << outdated->core
                 << " add up by where vectors lie; set OPENBLAS_CORETYPE=" << outdated->better;
  }
  CheckAll(Chosen(LargeCoreOpCases(), 3), {Values::kModest});
}

// A row of complex products has the bits of its elements computed alone, wherever they stand.
TEST_P(SameBits, OfComplexProductsInEveryPlaceOfARow) {
  std::mt19937_64 random(43);
  using Ints = std::vector<int64_t>;
  for (const DType d : {DType::kC64, DType::kC128}) {
    constexpr int64_t kTerms = 7;
    for (const int64_t width : {1, 2, 3, 5, 8, 13, 31, 300}) {
      const NodeCase product{.name = "product",
                             .op = &Def(CoreOp::kReduce),
                             .attrs = Attributes(Def(CoreOp::kReduce).attrs)
                                          .Set("kind", static_cast<int64_t>(ReduceKind::kProduct))
                                          .Set("dimensions", Ints{1}),
                             .operands = {{d, {width, kTerms}}}};
      const NodeCase outer{.name = "outer product",
                           .op = &Def(CoreOp::kDotGeneral),
                           .attrs = Attributes(Def(CoreOp::kDotGeneral).attrs)
                                        .Set("lhs_contracting_dimensions", Ints{})
                                        .Set("rhs_contracting_dimensions", Ints{}),
                           .operands = {{d, {width}}, {d, {2}}}};
      for (const NodeCase& node_case : {product, outer}) {
        // Every column alike, so that every result must be.
        std::vector<Literal> arguments;
        const Literal one = RandomLiteral({d, {kTerms}}, Values::kNearOne, &random);
        const size_t bytes = static_cast<size_t>(SizeOf(d));
        for (const ConcreteType& type : node_case.operands) {
          Literal literal = Literal::Create(type).value();
          for (int64_t i = 0; i < type.num_elements(); ++i) {
            const int64_t term = node_case.operands.size() == 1 ? i / width : 0;
            std::memcpy(literal.mutable_data() + static_cast<size_t>(i) * bytes,
                        one.bytes().data() + static_cast<size_t>(term) * bytes, bytes);
          }
          arguments.push_back(std::move(literal));
        }
        const auto results = CompileAndRun(GraphOf(node_case), {.backend = backends_[0].get()}, arguments);
        ASSERT_TRUE(results.ok()) << results.status();
        const absl::string_view bits = (*results)[0].bytes();
        for (size_t i = bytes; i < bits.size(); i += bytes) {
          EXPECT_EQ(bits.substr(i, bytes), bits.substr(0, bytes))
              << node_case.name << " on " << Name(d) << ", width " << width << ", element " << i / bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensord
