// Every core op on every dtype, at sizes 0, 1, odd and large and ranks 0 to 8, on every backend against the reference
// evaluator; values modest, at the edges of their dtypes, and integral. Some of it under every setting of the matrix.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/ir/verifier.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/reference/evaluator.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/node_case.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/reason_of.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/testlib/runs/hidden_memory_backend.h"
#include "tests/testlib/runs/setting_run.h"
#include "tests/testlib/runs/settings_matrix.h"
#include "tests/testlib/runs/veiled_backend.h"

namespace tensord {
namespace {

// Returns the cases that are a backend's part. Where kernels are compiled they are one of TENSORD_CUDA_CASES, for a GPU
// that has a minute: five, say, which divides no list of shapes, so that each of them comes with some op.
std::vector<NodeCase> CasesFor(const BackendUnderTest& backend) {
  std::vector<NodeCase> cases = CoreOpCases();
  const char* const chosen = std::getenv("TENSORD_CUDA_CASES");
  size_t one_of = 1;
  if (backend.compiles && chosen != nullptr && (!absl::SimpleAtoi(chosen, &one_of) || one_of == 0)) {
    ADD_FAILURE() << "not a number: " << chosen;
    one_of = 1;
  }
  std::vector<NodeCase> some;
  const size_t step = one_of * static_cast<size_t>(backend.parts);
  for (size_t i = one_of * static_cast<size_t>(backend.part); i < cases.size(); i += step) {
    some.push_back(std::move(cases[i]));
  }
  return some;
}

std::unique_ptr<Backend> MakeCpu1() { return MakeCpuBackend({.threads = 1}); }
std::unique_ptr<Backend> MakeCpu3() { return MakeCpuBackend({.threads = 3}); }
std::unique_ptr<Backend> MakeVeiled() { return MakeVeiledBackend(MakeCpuBackend({.threads = 2})); }
std::unique_ptr<Backend> MakeHidden() { return std::make_unique<HiddenMemoryBackend>(); }

const BackendUnderTest kBackends[] = {{"cpu_1_thread", &MakeCpu1},
                                      {"cpu_3_threads", &MakeCpu3},
                                      {"veiled_cpu", &MakeVeiled},
                                      {"hidden", &MakeHidden},
                                      {"cuda", &MakeCudaUnderTest, /*compiles=*/true}};

// Returns the same, with those that compile in parts, which take a minute each.
std::vector<BackendUnderTest> BackendsInParts() {
  constexpr int kParts = 4;
  std::vector<BackendUnderTest> in_parts;
  for (BackendUnderTest backend : kBackends) {
    const std::string name = backend.name;
    backend.parts = backend.compiles ? kParts : 1;
    for (backend.part = 0; backend.part < backend.parts; ++backend.part) {
      if (backend.parts > 1) backend.name = absl::StrCat(name, "_", backend.part + 1, "_of_", backend.parts);
      in_parts.push_back(backend);
    }
  }
  return in_parts;
}

// Cases that a backend has no kernel for, by its own word: by op and the dtype that it refuses.
class Unsupported {
 public:
  explicit Unsupported(const Backend* backend) : backend_(backend) {}

  // Counts a case if the backend refuses its op.
  bool Counts(const NodeCase& node_case, DType result) {
    std::vector<DType> dtypes;
    for (const ConcreteType& type : node_case.operands) dtypes.push_back(type.dtype);
    const absl::Status supported = backend_->Supports(*node_case.op, dtypes, result);
    if (supported.ok()) return false;
    EXPECT_EQ(ReasonOf(supported), "UNSUPPORTED_ON_DEVICE") << node_case.name;
    ++of_op_[std::string(node_case.op->name)];
    ++count_;
    return true;
  }
  int64_t count() const { return count_; }
  ~Unsupported() {
    if (count_ == 0) return;
    std::cout << count_ << " cases of ops without a kernel:";
    for (const auto& [op, cases] : of_op_) std::cout << " " << op << " " << cases;
    std::cout << std::endl;
  }

 private:
  const Backend* const backend_;
  int64_t count_ = 0;
  std::map<std::string, int64_t> of_op_;
};

DType ResultOf(const Graph& typed) { return typed.type(typed.outputs()[0].value).dtype; }

bool IsProduct(const NodeCase& node_case) {
  return Is(*node_case.op, CoreOp::kReduce) &&
         static_cast<ReduceKind>(node_case.attrs.Int("kind")) == ReduceKind::kProduct;
}

double LargestMagnitude(const Literal& literal) {
  double largest = 0;
  VisitDType(literal.dtype(), [&]<typename T>(TypeTag<T>) {
    for (const T& x : literal.values<T>()) {
      const auto z = scalar::ConvertElement<Complex128>(x);
      for (const double part : {std::abs(z.real()), std::abs(z.imag())}) {
        if (std::isfinite(part)) largest = std::max(largest, part);
      }
    }
  });
  return largest;
}

// Returns the allowed difference from the reference: nothing but rounding, and that only for inexact computations.
Tolerance ToleranceOf(const NodeCase& node_case, const std::vector<Literal>& arguments) {
  const OpDef& op = *node_case.op;
  if (Is(op, CoreOp::kReduce) || Is(op, CoreOp::kDotGeneral)) {
    const bool half = SizeOf(node_case.operands[0].dtype) == 2;
    const bool wide = SizeOf(RealPartOf(node_case.operands[0].dtype)) == 8;
    if (IsProduct(node_case)) {  // a relative error of up to one rounding a factor
      const double rounding = half ? 8e-3 : wide ? 2.3e-16 : 1.2e-7;
      return {.ulps = 2,
              .norm_relative = rounding * static_cast<double>(half ? 1 : node_case.operands[0].num_elements())};
    }
    // A sum may be small beside its terms; 16-bit floats are added in F32, where that does not show.
    double largest_term = 1;
    for (const Literal& argument : arguments) largest_term *= LargestMagnitude(argument);
    const bool is_sum =
        Is(op, CoreOp::kDotGeneral) || static_cast<ReduceKind>(node_case.attrs.Int("kind")) == ReduceKind::kSum;
    return {.ulps = 2,
            .norm_relative = half   ? 4e-3
                             : wide ? 1e-14
                                    : 2e-6,
            .least_norm = is_sum && !half ? largest_term : 0};
  }
  if (op.op_class == OpClass::kPlain) return {};
  // Complex results: relative to the largest component at hand.
  if (kComplexes.Contains(node_case.operands[0].dtype)) {
    return {.ulps = 4, .norm_relative = node_case.operands[0].dtype == DType::kC64 ? 1e-6 : 1e-14};
  }
  return {.ulps = 4};
}

bool IsComplexAtEdges(const NodeCase& node_case) {
  return !node_case.operands.empty() && kComplexes.Contains(node_case.operands[0].dtype);
}

class BackendSuite : public testing::TestWithParam<BackendUnderTest> {
 protected:
  // Calls `check` with each case that the backend has a kernel for, and its program. Many are compiled before the first
  // of them runs.
  void ForEachProgram(bool row_major, absl::FunctionRef<bool(const NodeCase&)> is_wanted,
                      absl::FunctionRef<void(const NodeCase&, const CompiledProgram&)> check) {
    constexpr size_t kAtOnce = 200;
    const KernelsTogether together;
    std::vector<NodeCase> cases = CasesFor(GetParam());
    for (size_t first = 0; first < cases.size(); first += kAtOnce) {
      std::vector<std::pair<const NodeCase*, CompiledProgramPtr>> programs;
      for (size_t i = first; i < std::min(cases.size(), first + kAtOnce); ++i) {
        if (!is_wanted(cases[i])) continue;
        Graph graph = GraphOf(cases[i]);
        ASSERT_TRUE(InferTypes(&graph).ok()) << cases[i].name;
        if (unsupported_.Counts(cases[i], ResultOf(graph))) continue;
        const auto program = CompileAlone(GraphOf(cases[i]), {.backend = backend_.get(), .row_major = row_major});
        ASSERT_TRUE(program.ok()) << cases[i].name << ": " << program.status();
        programs.emplace_back(&cases[i], *program);
      }
      for (const auto& [node_case, program] : programs) check(*node_case, *program);
    }
  }

  const std::unique_ptr<Backend> backend_ = GetParam().make();
  Unsupported unsupported_{backend_.get()};
};

// Returns the values of a case's operands; none where its results would depend on more than the op.
std::optional<std::vector<Literal>> ArgumentsOf(const NodeCase& node_case, Values values, std::mt19937_64* random) {
  // Sums over infinities depend on the order by nature, and complex functions at infinities on the formula.
  const bool sums = Is(*node_case.op, CoreOp::kDotGeneral) || Is(*node_case.op, CoreOp::kReduce);
  const bool integral = !node_case.operands.empty() && (kIntegers | kBoolOnly).Contains(node_case.operands[0].dtype);
  if (values == Values::kEdges && !integral &&
      (sums || (IsComplexAtEdges(node_case) && node_case.op->op_class != OpClass::kPlain))) {
    return std::nullopt;
  }
  if (IsProduct(node_case) && values == Values::kIntegers) return std::nullopt;  // overflows
  const Values drawn = IsProduct(node_case) && values == Values::kModest ? Values::kNearOne : values;
  std::vector<Literal> arguments;
  for (const ConcreteType& type : node_case.operands) arguments.push_back(RandomLiteral(type, drawn, random));
  return arguments;
}

TEST_P(BackendSuite, EveryOpOnEveryDtypeAgreesWithTheReference) {
  std::mt19937_64 random(20240601);
  int64_t run = 0, programs = 0, failed = 0;
  ForEachProgram(
      /*row_major=*/false, [](const NodeCase&) { return true; },
      [&](const NodeCase& node_case, const CompiledProgram& program) {
        ++programs;
        Graph graph = GraphOf(node_case);
        const auto guards = InferTypes(&graph);
        for (const Values values : {Values::kModest, Values::kEdges, Values::kIntegers}) {
          const auto arguments = ArgumentsOf(node_case, values, &random);
          if (!arguments.has_value()) continue;
          const auto want = EvaluateReference(graph, *guards, *arguments);
          ASSERT_TRUE(want.ok()) << node_case.name << ": " << want.status();
          const auto got = RunCompiled(program, *arguments);
          ASSERT_TRUE(got.ok()) << node_case.name << ": " << got.status();
          ++run;
          const std::string difference = Difference((*got)[0], (*want)[0], ToleranceOf(node_case, *arguments));
          if (!difference.empty() && ++failed <= 40) {
            const std::string shown = arguments->empty() ? "" : absl::StrCat(" values ", static_cast<int>(values));
            ADD_FAILURE() << node_case.name << shown << ": " << difference;
          }
        }
      });
  EXPECT_EQ(failed, 0) << "of " << run;
  EXPECT_GT(programs, 0);
  EXPECT_GE(run, programs);
}

TEST_P(BackendSuite, RowMajorProgramsAgreeWithTheReference) {
  std::mt19937_64 random(7);
  ForEachProgram(/*row_major=*/true,
                 [](const NodeCase& node_case) {
                   return node_case.op->op_class == OpClass::kPlain || node_case.operands[0].rank() >= 2;
                 },
                 [&](const NodeCase& node_case, const CompiledProgram& program) {
                   std::vector<Literal> arguments;
                   const Values values = IsProduct(node_case) ? Values::kNearOne : Values::kIntegers;
                   for (const ConcreteType& type : node_case.operands) {
                     arguments.push_back(RandomLiteral(type, values, &random));
                   }
                   Graph graph = GraphOf(node_case);
                   const auto guards = InferTypes(&graph);
                   const auto want = EvaluateReference(graph, *guards, arguments);
                   ASSERT_TRUE(want.ok()) << node_case.name << ": " << want.status();
                   const auto got = RunCompiled(program, arguments);
                   ASSERT_TRUE(got.ok()) << node_case.name << ": " << got.status();
                   EXPECT_EQ(Difference((*got)[0], (*want)[0], ToleranceOf(node_case, arguments)), "")
                       << node_case.name;
                 });
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendSuite, testing::ValuesIn(BackendsInParts()), NameOfBackend());

class BackendMemory : public testing::TestWithParam<BackendUnderTest> {};

TEST_P(BackendMemory, IsWrittenCopiedAndExported) {
  const std::unique_ptr<Backend> backend = GetParam().make();
  const auto exported = [&](const BufferPtr& buffer) {
    const std::shared_ptr<const void> bytes = *backend->Export(buffer);
    return std::string(static_cast<const char*>(bytes.get()), static_cast<size_t>(buffer->size_bytes()));
  };
  const std::shared_ptr<Buffer> buffer = *backend->Allocate(300);
  ASSERT_TRUE(backend->Write(buffer.get(), 0, std::string(300, 'a')).ok());
  ASSERT_TRUE(backend->Write(buffer.get(), 101, std::string(99, 'b')).ok());
  ASSERT_TRUE(backend->Write(buffer.get(), 300, "").ok());
  const std::string written = std::string(101, 'a') + std::string(99, 'b') + std::string(100, 'a');
  EXPECT_EQ(exported(buffer), written);
  EXPECT_EQ(exported(Buffer::View(buffer, 100, 3)), "abb");
  const BufferPtr copy = *backend->Copy(*Buffer::View(buffer, 100, 200));
  ASSERT_TRUE(backend->Write(buffer.get(), 0, std::string(300, 'c')).ok());
  EXPECT_EQ(exported(copy), written.substr(100)) << "it is memory of its own";

  std::vector<std::shared_ptr<const void>> bytes(3);
  ASSERT_TRUE(backend->ExportAll({copy, nullptr, buffer}, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(static_cast<const char*>(bytes[0].get())[1], 'b');
  EXPECT_EQ(bytes[1], nullptr);
  EXPECT_EQ(static_cast<const char*>(bytes[2].get())[299], 'c');
}

TEST_P(BackendMemory, IsReleased) {
  const std::unique_ptr<Backend> backend = GetParam().make();
  const int64_t before = backend->Memory().in_use_bytes;
  const NodeCase node_case{.name = "add",
                           .op = &Def(CoreOp::kAdd),
                           .attrs = Attributes(Def(CoreOp::kAdd).attrs),
                           .operands = {{DType::kF32, {5}}, {DType::kF32, {5}}}};
  std::mt19937_64 random(1);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Literal> arguments = {RandomLiteral(node_case.operands[0], Values::kModest, &random),
                                            RandomLiteral(node_case.operands[1], Values::kModest, &random)};
    ASSERT_TRUE(CompileAndRun(GraphOf(node_case), {.backend = backend.get()}, arguments).ok());
    EXPECT_EQ(backend->Memory().in_use_bytes, before);
  }
  const auto* const hidden = dynamic_cast<const HiddenMemoryBackend*>(backend.get());
  if (hidden != nullptr) {
    EXPECT_EQ(hidden->live_buffers(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendMemory, testing::ValuesIn(kBackends), NameOfBackend());

// Returns the first small cases of each op on each dtype.
std::vector<NodeCase> FewCases() {
  constexpr int kCasesOfAKind = 8;
  constexpr int64_t kMaxElements = 2000;
  std::map<std::pair<const OpDef*, DType>, int> taken;
  std::vector<NodeCase> few;
  for (NodeCase& node_case : CoreOpCases()) {
    const bool is_small = std::all_of(node_case.operands.begin(), node_case.operands.end(),
                                      [](const ConcreteType& type) { return type.num_elements() <= kMaxElements; });
    const DType dtype = node_case.operands.empty() ? DType::kInvalid : node_case.operands.back().dtype;
    if (is_small && taken[{node_case.op, dtype}]++ < kCasesOfAKind) few.push_back(std::move(node_case));
  }
  return few;
}

TEST(SettingsMatrix, EveryOpOnEveryDtypeAgreesUnderEverySetting) {
  std::vector<std::unique_ptr<SettingRun>> settings;
  for (const MatrixSetting& setting : ChosenSettings()) settings.push_back(std::make_unique<SettingRun>(setting));
  std::mt19937_64 random(11);
  int64_t run = 0;
  for (const NodeCase& node_case : FewCases()) {
    std::vector<Literal> arguments;
    const Values values = IsProduct(node_case) ? Values::kNearOne : Values::kIntegers;
    for (const ConcreteType& type : node_case.operands) arguments.push_back(RandomLiteral(type, values, &random));
    Graph graph = GraphOf(node_case);
    const auto guards = InferTypes(&graph);
    ASSERT_TRUE(guards.ok()) << node_case.name << ": " << guards.status();
    const auto want = EvaluateReference(graph, *guards, arguments);
    ASSERT_TRUE(want.ok()) << node_case.name << ": " << want.status();
    for (const std::unique_ptr<SettingRun>& setting : settings) {
      const auto program = setting->CompileGraph(GraphOf(node_case), /*row_major=*/run % 2 == 1);
      ASSERT_TRUE(program.ok()) << setting->name() << ", " << node_case.name << ": " << program.status();
      const auto got = RunCompiled(**program, arguments);
      ASSERT_TRUE(got.ok()) << setting->name() << ", " << node_case.name << ": " << got.status();
      EXPECT_EQ(Difference((*got)[0], (*want)[0], ToleranceOf(node_case, arguments)), "")
          << setting->name() << ", " << node_case.name;
    }
    ++run;
  }
  EXPECT_GT(run, 1500);
}

TEST(CoreOpCases, CoverEveryOpAndDtype) {
  std::set<std::pair<std::string, DType>> covered;
  const std::vector<NodeCase> cases = CoreOpCases();
  EXPECT_GT(cases.size(), 2000u);
  for (const NodeCase& node_case : cases) {
    Graph graph = GraphOf(node_case);
    ASSERT_TRUE(InferTypes(&graph).ok()) << node_case.name;
    const ValueId result = graph.outputs()[0].value;
    const DType dtype = node_case.operands.empty()           ? graph.type(result).dtype
                        : Is(*node_case.op, CoreOp::kSelect) ? node_case.operands[1].dtype
                                                             : node_case.operands[0].dtype;
    covered.insert({std::string(node_case.op->name), dtype});
  }
  for (const OpDef& op : CoreOps()) {
    for (DType d : kAllDTypes) {
      if (op.dtypes.Contains(d)) {
        EXPECT_TRUE(covered.contains({std::string(op.name), d})) << op.name << " on " << Name(d) << " has no case";
      }
    }
  }
}

}  // namespace
}  // namespace tensord
