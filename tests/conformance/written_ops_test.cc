// Refusals speak of the ops that the client wrote, whatever these become: compositions of families, what passes make.

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/linalg/matrix_refusal.h"
#include "engine/ir/graph_builder.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

// y = op(…) of inputs of these types, with all its results for outputs.
std::string TextOf(absl::string_view op, absl::string_view attrs, int results, const std::vector<std::string>& types) {
  std::string inputs, operands, outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    absl::StrAppend(&inputs, "  %x", i, " = input : ", types[i], "\n");
    absl::StrAppend(&operands, i == 0 ? "" : ", ", "%x", i);
  }
  for (int i = 0; i < results; ++i) {
    absl::StrAppend(&outputs, "  output \"y", i, "\" = %y", results > 1 ? absl::StrCat(":", i) : "", "\n");
  }
  return absl::Substitute("graph \"g\" {\n$0  %y$1 = $2($3)$4\n$5}\n", inputs,
                          results > 1 ? absl::StrCat(":", results) : "", op, operands, attrs, outputs);
}

struct Written {
  std::string op;
  std::string attrs;
  int results;
  std::vector<std::string> types;
};

// Ops that become others before they run.
std::vector<Written> ExpandedOps() {
  return {{"tensord.linalg.v1.Inverse", "", 1, {"f64[n,n,b]"}},
          {"tensord.linalg.v1.Determinant", "", 1, {"f64[n,n,b]"}},
          {"tensord.linalg.v1.SignLogDeterminant", "", 2, {"c128[n,n,b]"}},
          {"tensord.linalg.v1.PseudoInverse", "", 1, {"f64[m,n,b]"}},
          {"tensord.linalg.v1.LeastSquares", "", 1, {"f32[m,n,b]", "f32[m,k,b]"}},
          {"tensord.linalg.v1.MatrixRank", "", 1, {"f64[m,n,b]"}},
          {"tensord.einsum.v1.Einsum", " {equation = \"ij,jk,kl->il\"}", 1, {"f64[2,3]", "f64[3,4]", "f64[4,5]"}},
          {"tril", "", 1, {"f32[3,3]"}},
          {"triu", "", 1, {"f32[n,n]"}}};
}

class WrittenOps : public testing::TestWithParam<BackendUnderTest> {
 protected:
  const std::unique_ptr<Backend> backend_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Backends, WrittenOps, testing::ValuesIn(kCpuAndCuda), NameOfBackend());

TEST_P(WrittenOps, EveryInstructionKnowsTheOpThatItIsOf) {
  for (const Written& written : ExpandedOps()) {
    const std::string text = TextOf(written.op, written.attrs, written.results, written.types);
    for (const bool row_major : {false, true}) {
      const auto program =
          Compile(ParsedGraph(text), {.device = "cpu:0", .row_major = row_major}, Fingerprint(), backend_.get());
      ASSERT_TRUE(program.ok()) << program.status() << text;
      int of_the_op = 0;
      for (const ExecInstruction& instruction : (*program)->program().instructions) {
        if (instruction.node != "y") continue;  // between the client's order and the program's
        EXPECT_EQ(instruction.written_op().name, written.op) << instruction.op->name;
        ++of_the_op;
      }
      EXPECT_GT(of_the_op, 0) << text;
    }
  }
}

// A backend, without one op.
class Lacking final : public Backend {
 public:
  Lacking(Backend* whole, absl::string_view lacks) : whole_(*whole), lacks_(lacks) {}

  absl::string_view kind() const override { return whole_.kind(); }
  DeviceDescription Describe() const override { return whole_.Describe(); }
  MemoryStats Memory() const override { return whole_.Memory(); }
  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override {
    if (op.name == lacks_) return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("the device has no ", lacks_));
    return whole_.Supports(op, operands, result);
  }
  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override {
    return whole_.Prepare(segments);
  }
  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override { return whole_.OpenSession(); }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override { return whole_.Allocate(size_bytes); }
  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void> owner) override {
    return whole_.Import(bytes, size_bytes, std::move(owner));
  }
  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override {
    return whole_.Export(std::move(buffer));
  }
  absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) override {
    return whole_.Write(buffer, offset_bytes, bytes);
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override { return whole_.Copy(buffer); }

 private:
  Backend& whole_;
  const std::string lacks_;
};

TEST_P(WrittenOps, WhatADeviceLacksIsRefusedByTheOpThatNeedsIt) {
  const std::pair<absl::string_view, absl::string_view> needs[] = {
      {"tensord.linalg.v1.Inverse", "tensord.linalg.v1.Solve"},
      {"tensord.linalg.v1.Determinant", "tensord.linalg.v1.Lu"},
      {"tensord.linalg.v1.SignLogDeterminant", "tensord.linalg.v1.Lu"},
      {"tensord.linalg.v1.PseudoInverse", "tensord.linalg.v1.Svd"},
      {"tensord.linalg.v1.LeastSquares", "tensord.linalg.v1.Svd"},
      {"tensord.linalg.v1.MatrixRank", "tensord.linalg.v1.SvdValues"},
      {"tensord.einsum.v1.Einsum", "dot_general"}};
  for (const auto& [op, lacks] : needs) {
    Lacking backend(backend_.get(), lacks);
    for (const Written& written : ExpandedOps()) {
      if (written.op != op) continue;
      const absl::Status status =
          Compile(ParsedGraph(TextOf(written.op, written.attrs, written.results, written.types)), {.device = "cpu:0"},
                  Fingerprint(), &backend)
              .status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
      const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{});
      EXPECT_EQ(detail.node, "y");
      EXPECT_EQ(detail.op, op) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("op ", op, ")"))) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("has no ", lacks))) << status;
    }
  }
}

// A triangle beside elementwise ops is comparisons, which are fused with them.
TEST_P(WrittenOps, SoItIsWithWhatPassesMakeOfAnOp) {
  for (const absl::string_view op : {"tril", "triu"}) {
    const Graph graph = ParsedGraph(absl::Substitute(
        "graph \"g\" {\n  %x = input : f32[n,n]\n  %e = exp(%x)\n  %y = $0(%e)\n  output \"y\" = %y\n}\n", op));
    const auto program = Compile(graph, {.device = "cpu:0"}, Fingerprint(), backend_.get());
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_EQ((*program)->program().instructions.size(), 1u);
    EXPECT_EQ((*program)->program().instructions[0].op->name, "fused");
    EXPECT_EQ((*program)->program().instructions[0].written_op().name, op);
    Lacking no_select(backend_.get(), "select");
    const absl::Status refused = Compile(graph, {.device = "cpu:0"}, Fingerprint(), &no_select).status();
    EXPECT_EQ(DetailOf(refused).value_or(RefusalDetail{}).op, op) << refused;
    EXPECT_EQ(DetailOf(refused).value_or(RefusalDetail{}).node, "y");
  }
}

TEST_P(WrittenOps, ASingularMatrixIsTheInversesAndHasItsPlaceInTheBatch) {
  // Small matrices and large ones have kernels of their own.
  for (const int64_t n : {3, 40}) {
    Literal a = *Literal::Create({DType::kF64, {n, n, 2, 2}});
    absl::Span<double> values = a.mutable_values<double>();
    for (int64_t b = 0; b < 4; ++b) {
      for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>((b * n + i) * n + i)] = 1;
    }
    values[static_cast<size_t>((2 * n + 1) * n + 1)] = 0;  // matrix [0,1], pivot 2
    for (const bool row_major : {false, true}) {
      const std::string text =
          "graph \"g\" {\n  %x = input : f64[n,n,b,c]\n  %twice = add(%x, %x)\n"
          "  %y = tensord.linalg.v1.Inverse(%twice)\n  %z = negate(%y)\n  output \"z\" = %z\n}\n";
      const absl::Status status =
          CompileAndRun(ParsedGraph(text), {.backend = backend_.get(), .row_major = row_major}, {a}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{});
      EXPECT_EQ(detail.reason, "MATRIX_SINGULAR");
      EXPECT_EQ(detail.node, "y");
      EXPECT_EQ(detail.op, "tensord.linalg.v1.Inverse");
      EXPECT_EQ(status.message(),
                "the matrix at batch index [0,1] is singular: pivot 2 of its LU factorization is zero (LAPACK's info "
                "is 2) (node \"y\", op tensord.linalg.v1.Inverse)");
    }
  }
}

// A number that is not finite is no failure of these ops, but a result; nor is a singular matrix if nothing divides by
// it.
TEST_P(WrittenOps, CompositionsThatHaveAnAnswerForEveryMatrix) {
  for (const double value : {0.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const Written& written : ExpandedOps()) {
      if (!absl::StrContains(written.op, "linalg") || (value == 0 && written.op == "tensord.linalg.v1.Inverse"))
        continue;
      std::vector<Literal> arguments;
      for (const std::string& type : written.types) {
        const DType dtype = absl::StartsWith(type, "f32")    ? DType::kF32
                            : absl::StartsWith(type, "c128") ? DType::kC128
                                                             : DType::kF64;
        Literal literal = *Literal::Create({dtype, {3, 3, 2}});
        if (dtype == DType::kF32) {
          for (float& x : literal.mutable_values<float>()) x = static_cast<float>(value);
        } else {
          for (size_t i = 0; i < literal.bytes().size() / sizeof(double); ++i) {
            reinterpret_cast<double*>(literal.mutable_data())[i] = value;
          }
        }
        arguments.push_back(std::move(literal));
      }
      const absl::Status status =
          CompileAndRun(ParsedGraph(TextOf(written.op, written.attrs, written.results, written.types)),
                        {.backend = backend_.get()}, arguments)
              .status();
      EXPECT_TRUE(status.ok()) << written.op << " of " << value << ": " << status;
    }
  }
}

// A test's op whose kernel fails as LAPACK's iterations do, independent of the matrix, and an op that is made of it.
absl::StatusOr<ResultTypes> InferSame(InferContext& context) { return ResultTypes{context.operand(0)}; }

constexpr OpDef Example(absl::string_view name, uint16_t index, Facet<ExpandRule> expand) {
  return {.family = "example",
          .index = index,
          .name = name,
          .summary = "Of a test.",
          .op_class = OpClass::kExtension,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = {},
          .traits = kNoTraits,
          .dtypes = kAnyDType,
          .infer = &InferSame,
          .refusals = RefusalTable::None("a test's"),
          .reference = Facet<ReferenceRule>::None("a test's"),
          .permute = Facet<PermuteRule>::None("a test's"),
          .jvp = Facet<JvpRule>::None("a test's"),
          .linear_transpose = Facet<TransposeRule>::None("a test's"),
          .expand = expand};
}

constexpr OpDef kIterate = Example("example.v1.Iterate", 0, Facet<ExpandRule>::None("a kernel computes it"));

absl::StatusOr<ExpandedResults> ExpandOuter(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const ValueId first, call.graph.Add(Def(CoreOp::kNegate), {call.operands[0]}));
  ASSIGN_OR_RETURN(const ValueId second, call.graph.Add(kIterate, {first}));
  ASSIGN_OR_RETURN(const ValueId third, call.graph.Add(Def(CoreOp::kExp), {second}));
  return ExpandedResults{third};
}

constexpr OpDef kOuter = Example("example.v1.Outer", 1, &ExpandOuter);

absl::StatusOr<ExpandedResults> ExpandOutermost(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const ValueId result, call.graph.Add(kOuter, {call.operands[0]}));
  return ExpandedResults{result};
}

constexpr OpDef kExampleOps[] = {kIterate, kOuter, Example("example.v1.Outermost", 2, &ExpandOutermost)};

class Diverging final : public cpu::Kernel {
 public:
  explicit Diverging(Shape shape) : shape_(std::move(shape)) {}
  void Run(const cpu::KernelArgs& args) const override {
    *args.failure = RefuseMatrix(Refusal::kNoConvergence, shape_, 3, 5);
  }

 private:
  const Shape shape_;
};

absl::StatusOr<std::unique_ptr<cpu::Kernel>> MakeDiverging(const BoundInstruction& instruction,
                                                           const cpu::FamilyContext&) {
  return std::make_unique<Diverging>(instruction.operands[0].shape);
}

constexpr cpu::FamilyKernel kExampleKernels[] = {{.op = "example.v1.Iterate", .make = &MakeDiverging}};

TEST(WrittenOpsOfTheCpu, AnIterationThatDoesNotConvergeIsTheOpsThatTheClientWrote) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1, .family_kernels = {kExampleKernels}});
  const absl::Span<const OpDef> families[] = {CoreOps(), kExampleOps};
  const OpRegistry registry(families);
  for (const absl::string_view op : {"example.v1.Iterate", "example.v1.Outer", "example.v1.Outermost"}) {
    const absl::StatusOr<Graph> graph = ParseGraph(TextOf(op, "", 1, {"f32[2,2,2,2]"}), registry);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const absl::Status status =
        CompileAndRun(*graph, {.backend = backend.get()}, {*Literal::Create({DType::kF32, {2, 2, 2, 2}})}).status();
    EXPECT_EQ(status.message(), absl::StrCat("the iteration for the matrix at batch index [1,1] did not converge "
                                             "(LAPACK's info is 5); scale it, or use a wider dtype (node \"y\", op ",
                                             op, ")"));
    EXPECT_EQ(DetailOf(status).value_or(RefusalDetail{}).op, op);
  }
}

}  // namespace
}  // namespace tensord
