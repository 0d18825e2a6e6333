// An einsum of symbolic sizes is contracted in the order that is best for the sizes of the run.
#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/exec/binding/segment_profile.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "engine/runtime/compile/compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;

// Returns the results of a run of ones for the chain of matrices [i,j], [j,k], [k,l].
absl::StatusOr<ProgramResults> RunOnOnes(const CompiledProgram& program, Backend* backend, int64_t i, int64_t j,
                                         int64_t k, int64_t l, RunTimes* times) {
  const std::vector<ConcreteType> types = {{.dtype = DType::kF64, .shape = {i, j}},
                                           {.dtype = DType::kF64, .shape = {j, k}},
                                           {.dtype = DType::kF64, .shape = {k, l}}};
  std::vector<BufferPtr> arguments;
  for (const ConcreteType& type : types) {
    const auto ones = std::make_shared<std::vector<double>>(static_cast<size_t>(type.num_elements()), 1.0);
    ASSIGN_OR_RETURN(BufferPtr buffer, backend->Import(ones->data(), type.num_bytes(), ones));
    arguments.push_back(std::move(buffer));
  }
  return program.Run(types, arguments, nullptr, times);
}

TEST(EinsumSizes, EachSetOfSizesHasItsOwnPath) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  const auto program = Compile(ParsedGraph(R"(graph "g" {
    %a = input : f64[i,j]
    %b = input : f64[j,k]
    %c = input : f64[k,l]
    %y = tensord.einsum.v1.Einsum(%a, %b, %c) {equation = "ij,jk,kl->il"}
    output "y" = %y
  })"),
                               {.device = "cpu:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  struct Case {
    int64_t i, j, k, l;
    std::array<std::string, 2> intermediate;
  };
  // Types of a b, or of b c: in either order of its axes.
  const std::vector<Case> cases = {{2, 50, 60, 70, {"[2,60]", "[60,2]"}},
                                   {70, 40, 50, 3, {"[40,3]", "[3,40]"}},
                                   {2, 50, 60, 70, {"[2,60]", "[60,2]"}}};
  for (const Case& c : cases) {
    RunTimes times;
    const auto results = RunOnOnes(**program, backend.get(), c.i, c.j, c.k, c.l, &times);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(results->types[0].shape, (Shape{c.i, c.l}));
    const auto* values = static_cast<const double*>(results->buffers[0]->address());
    for (int64_t e = 0; e < c.i * c.l; ++e) ASSERT_EQ(values[e], static_cast<double>(c.j * c.k));
    std::vector<std::string> kernels;
    for (const SegmentProfile& segment : MakeProfile(times, {})) kernels.push_back(segment.kernel);
    EXPECT_THAT(kernels, Contains(AnyOf(HasSubstr(c.intermediate[0]), HasSubstr(c.intermediate[1]))));
  }
}

// A bound in elements says nothing of sizes that are not known yet: the run's are held to it.
TEST(EinsumSizes, AMemoryBoundIsHeldByTheSizesOfTheRun) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  for (const char* path : {"", ", path = [[0, 1], [0, 1]]"}) {
    const auto program = Compile(ParsedGraph(std::string(R"(graph "g" {
      %a = input : f64[i,j]
      %b = input : f64[j,k]
      %c = input : f64[k,l]
      %y = tensord.einsum.v1.Einsum(%a, %b, %c) {equation = "ij,jk,kl->il", largest_intermediate = 12)") +
                                             path + "}\n output \"y\" = %y\n}"),
                                 {.device = "cpu:0"}, Fingerprint(), backend.get());
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_TRUE(RunOnOnes(**program, backend.get(), 3, 50, 4, 3, nullptr).ok());
    const auto refused = RunOnOnes(**program, backend.get(), 30, 50, 40, 30, nullptr);
    ASSERT_FALSE(refused.ok());
    const RefusalDetail detail = DetailOf(refused.status()).value_or(RefusalDetail{});
    EXPECT_EQ(detail.limit, "largest_intermediate") << refused.status();
    EXPECT_EQ(detail.node, "y");
  }
}

// Without a bound nothing is refused for its elements; what does not fit into memory is.
TEST(EinsumSizes, WithoutABoundARunIsRefusedForItsMemory) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  const auto program = Compile(ParsedGraph(R"(graph "g" {
    %a = input : f64[1024]
    %y = tensord.einsum.v1.Einsum(%a, %a, %a, %a, %a, %a, %a, %a, %a, %a)
        {equation = "a,b,c,d,e,a,b,c,d,e->", optimizer = left_to_right}
    output "y" = %y
  })"),
                               {.device = "cpu:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  const auto ones = std::make_shared<std::vector<double>>(1024, 1.0);
  const ConcreteType type = {.dtype = DType::kF64, .shape = {1024}};
  const absl::StatusOr<BufferPtr> argument = backend->Import(ones->data(), type.num_bytes(), ones);
  ASSERT_TRUE(argument.ok()) << argument.status();
  const auto refused = (*program)->Run({type}, {*argument}, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(DetailOf(refused.status()).value_or(RefusalDetail{}).reason, "OUT_OF_MEMORY") << refused.status();
}

// The text of an einsum of I32 operands, "n,2;m".
std::string EinsumText(absl::string_view equation, absl::string_view shapes) {
  std::string inputs, names;
  int i = 0;
  for (const absl::string_view shape : absl::StrSplit(shapes, ';')) {
    absl::StrAppend(&inputs, "  %x", i, " = input : i32[", shape, "]\n");
    absl::StrAppend(&names, i == 0 ? "" : ", ", "%x", i);
    ++i;
  }
  return absl::StrCat("graph \"g\" {\n", inputs, "  %y = tensord.einsum.v1.Einsum(", names, ") {equation = \"",
                      equation, "\"}\n  output \"y\" = %y\n}\n");
}

// The axes of an ellipsis are symbols: 1 repeats. One program serves all sizes, of two operands the same code.
TEST(EinsumSizes, AnAxisOfAnEllipsisMayTurnOutToBeOne) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  const struct {
    absl::string_view equation, shapes;
  } cases[] = {{"ij...,jk...->ik...", "2,4,3;4,5,n"},      {"...i,...i->...", "n,2;m,2"},
               {"...ij,...jk->...ik", "n,m,3,2;k,2,4"},    {"...,...->...", "n;m"},
               {"...,...,...->...", "n,2;k,m,2;m,1"},      {"...i,...ij,j...->...", "n,m,2;k,2,3;3,k,n,m"},
               {"...,i...,...i,...->i...", "n;2,m;k,m,2;"}};
  std::mt19937_64 random(5);
  for (const auto& c : cases) {
    for (const bool row_major : {false, true}) {
      SCOPED_TRACE(absl::StrCat(c.equation, " of ", c.shapes, row_major ? " in row-major order" : ""));
      const auto program = Compile(ParsedGraph(EinsumText(c.equation, c.shapes)),
                                   {.device = "cpu:0", .row_major = row_major}, Fingerprint(), backend.get());
      ASSERT_TRUE(program.ok()) << program.status();
      int refused = 0;
      for (int sizes = 0; sizes < 64; ++sizes) {
        const int64_t n = sizes % 4, m = sizes / 4 % 4, k = sizes / 16;
        Graph known = ParsedGraph(EinsumText(
            c.equation,
            absl::StrReplaceAll(c.shapes, {{"n", absl::StrCat(n)}, {"m", absl::StrCat(m)}, {"k", absl::StrCat(k)}})));
        const absl::Status fits = InferTypes(&known).status();
        std::vector<Literal> arguments;
        for (const GraphInput& input : known.inputs()) {
          arguments.push_back(RandomLiteral(ToConcreteType(input.type), Values::kIntegers, &random));
        }
        const absl::StatusOr<std::vector<Literal>> got = RunCompiled(**program, arguments);
        if (!fits.ok()) {
          ++refused;
          const RefusalDetail detail = DetailOf(got.status()).value_or(RefusalDetail{});
          EXPECT_EQ(detail.reason, "SHAPE_MISMATCH") << got.status();
          EXPECT_EQ(detail.node, "y");
          continue;
        }
        ASSERT_TRUE(got.ok()) << n << " " << m << " " << k << ": " << got.status();
        const absl::StatusOr<std::vector<Literal>> want = EvaluateReference(known, {}, arguments);
        ASSERT_TRUE(want.ok()) << want.status();
        EXPECT_EQ(Difference((*got)[0], (*want)[0], {}), "") << n << " " << m << " " << k;
      }
      EXPECT_GT(refused, 0);
    }
  }
}

}  // namespace
}  // namespace tensord
