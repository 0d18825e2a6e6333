// Random graphs in other algebras, compiled and run, against the reference evaluator's reading of their standard form;
// and refusals and Explain, which speak of the ops that the client wrote.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/algebra/standard_form.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/printer.h"
#include "engine/ops/semiring.h"
#include "engine/passes/lowering/expand_families.h"
#include "engine/reference/evaluator.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/compile/explain.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

constexpr Algebra kAlgebras[] = {Algebra::kMaxPlus, Algebra::kMinPlus, Algebra::kMaxTimes, Algebra::kOrAnd};

// Writes a graph of a few nodes over values whose axes are called after their sizes: p and q, which a run binds, and
// some numbers.
class RandomText {
 public:
  // If `is_ordinary`, the graph is in the standard algebra, and only its products are in the other one.
  RandomText(Algebra algebra, DType dtype, bool is_ordinary, std::mt19937_64* random)
      : dtype_(Name(dtype)), sum_(is_ordinary ? dtype == DType::kBool ? "or" : "max" : "sum"), random_(*random) {
    text_ = absl::StrCat("graph \"g\" algebra ", is_ordinary ? "standard" : Name(algebra), " {\n");
    if (is_ordinary) of_products_ = absl::StrCat(", algebra = ", Name(algebra));
    for (const char* axes : {"p,q", "q,p", "p,p", "q", "2,p", "q,2,p"}) AddInput(axes);
  }

  std::string Text() {
    for (int i = 0; i < 8; ++i) AddNode();
    for (size_t i = values_.size() - 4; i < values_.size(); ++i) {
      absl::StrAppend(&text_, "  output \"y", i, "\" = %v", i, "\n");
    }
    return text_ + "}\n";
  }

 private:
  struct Value {
    std::vector<std::string> axes;
  };

  size_t Below(size_t n) { return random_() % n; }
  size_t Any() { return Below(values_.size()); }
  void AddInput(const std::string& axes) {
    absl::StrAppend(&text_, "  %v", values_.size(), " = input : ", dtype_, "[", axes, "]\n");
    values_.push_back({absl::StrSplit(axes, ',')});
  }
  void Add(const std::string& op, std::vector<std::string> axes) {
    if (axes.size() > 4) return;
    absl::StrAppend(&text_, "  %v", values_.size(), " = ", op, "\n");
    values_.push_back({std::move(axes)});
  }
  // Returns the letters of a value's axes; a number's is one of its own.
  std::string Letters(const Value& value) const {
    std::string letters;
    for (const std::string& axis : value.axes) letters += axis == "2" ? "t" : axis;
    return letters;
  }

  void AddNode() {
    const size_t x = Any();
    const std::vector<std::string> axes = values_[x].axes;
    switch (Below(8)) {
      case 0:
      case 1: {
        size_t y = x;
        for (size_t i = 0; i < values_.size(); ++i) {
          if (values_[i].axes == axes && Below(2) == 0) y = i;
        }
        const char* other = of_products_.empty() || sum_ == "or" ? "multiply" : "maximum";
        return Add(absl::StrCat(Below(2) == 0 ? "add" : other, "(%v", x, ", %v", y, ")"), axes);
      }
      case 2: {
        if (axes.empty()) return;
        std::vector<std::string> kept = axes;
        const size_t axis = Below(axes.size());
        kept.erase(kept.begin() + static_cast<ptrdiff_t>(axis));
        return Add(absl::StrCat("reduce(%v", x, ") {kind = ", sum_, ", dimensions = [", axis, "]}"), kept);
      }
      case 3:
        if (axes.size() < 2) return;
        return Add(absl::StrCat(Below(2) == 0 ? "tril" : "triu", "(%v", x, ") {diagonal = ", Below(3), "}"), axes);
      case 4: {
        if (axes.empty()) return;
        std::vector<std::string> more = axes;
        const size_t from = Below(axes.size()), to = Below(axes.size() + 1);
        more.insert(more.begin() + static_cast<ptrdiff_t>(to), axes[from]);
        return Add(absl::StrCat("embed_diag(%v", x, ") {axis_a = ", from, ", axis_b = ", to, "}"), more);
      }
      case 5: {
        std::vector<std::string> reversed(axes.rbegin(), axes.rend());
        std::vector<size_t> order;
        for (size_t i = axes.size(); i-- > 0;) order.push_back(i);
        return Add(absl::StrCat("transpose(%v", x, ") {permutation = [", absl::StrJoin(order, ", "), "]}"), reversed);
      }
      case 6: {
        const size_t y = Any();
        for (size_t a = 0; a < axes.size(); ++a) {
          const std::vector<std::string>& other = values_[y].axes;
          const auto b = std::find(other.begin(), other.end(), axes[a]);
          if (b == other.end()) continue;
          std::vector<std::string> result = axes;
          result.erase(result.begin() + static_cast<ptrdiff_t>(a));
          for (auto it = other.begin(); it != other.end(); ++it) {
            if (it != b) result.push_back(*it);
          }
          return Add(absl::StrCat("dot_general(%v", x, ", %v", y, ") {lhs_contracting_dimensions = [", a,
                                  "], rhs_contracting_dimensions = [", b - other.begin(), "]", of_products_, "}"),
                     result);
        }
        return;
      }
      default: {
        const std::vector<size_t> operands = {x, Any(), Any()};
        std::vector<std::string> terms, names;
        std::string output;
        for (size_t operand : operands) {
          terms.push_back(Letters(values_[operand]));
          names.push_back(absl::StrCat("%v", operand));
          for (char letter : terms.back()) {
            if (output.find(letter) == std::string::npos && Below(2) == 0) output += letter;
          }
        }
        if (!output.empty() && Below(4) == 0) output += output[0];
        std::vector<std::string> result;
        for (char letter : output) result.push_back(letter == 't' ? "2" : std::string(1, letter));
        return Add(absl::StrCat("tensord.einsum.v1.Einsum(", absl::StrJoin(names, ", "), ") {equation = \"",
                                absl::StrJoin(terms, ","), "->", output, "\"", of_products_, "}"),
                   result);
      }
    }
  }

  const std::string dtype_;
  const std::string sum_;    // the kind of reductions
  std::string of_products_;  // their attribute
  std::mt19937_64& random_;
  std::string text_;
  std::vector<Value> values_;
};

absl::StatusOr<std::vector<Literal>> Wanted(const std::string& text, const std::vector<Literal>& arguments) {
  Graph graph = TypedGraph(text);
  RETURN_IF_ERROR(ExpandFamilies(&graph));
  RETURN_IF_ERROR(WriteInStandardForm(&graph));
  ASSIGN_OR_RETURN(const std::vector<ShapeGuard> guards, InferTypes(&graph));
  return EvaluateReference(graph, guards, arguments);
}

// Small whole numbers, powers of two where they are multiplied, maybe with some zeros of the algebra: everything is
// exact.
Literal Argument(const ConcreteType& type, Algebra algebra, bool has_zeros, std::mt19937_64* random) {
  Literal literal = RandomLiteral(type, Values::kIntegers, random);
  VisitDType(type.dtype, [&]<typename T>(TypeTag<T>) {
    if constexpr (SemiringElement<T> && !std::is_same_v<T, Bool>) {
      for (T& x : literal.mutable_values<T>()) {
        if (algebra == Algebra::kMaxTimes) x = scalar::ConvertElement<T>(static_cast<int32_t>((*random)() % 3));
        if (has_zeros && (*random)() % 5 == 0) x = SemiringZero<T>(algebra);
      }
    }
  });
  return literal;
}

// Runs the graph of the text for these sizes in every way, and compares it with the reference.
void ExpectReference(const std::string& text, DType dtype, Algebra algebra, bool has_zeros,
                     const std::vector<std::pair<int64_t, int64_t>>& sizes, absl::Span<Backend* const> backends,
                     std::mt19937_64* random) {
  for (const auto& [p, q] : sizes) {
    std::vector<Literal> arguments;
    for (const Shape& shape : {Shape{p, q}, Shape{q, p}, Shape{p, p}, Shape{q}, Shape{2, p}, Shape{q, 2, p}}) {
      arguments.push_back(Argument({dtype, shape}, algebra, has_zeros, random));
    }
    const auto wanted = Wanted(text, arguments);
    ASSERT_TRUE(wanted.ok()) << wanted.status() << text;
    for (Backend* backend : backends) {
      for (const bool row_major : {false, true}) {
        const auto got = CompileAndRun(ParsedGraph(text), {.backend = backend, .row_major = row_major}, arguments);
        ASSERT_TRUE(got.ok()) << got.status() << text;
        for (size_t k = 0; k < wanted->size(); ++k) {
          ASSERT_EQ(Difference((*got)[k], (*wanted)[k], {}), "")
              << "output " << k << (row_major ? ", row-major\n" : "\n") << text;
        }
      }
    }
  }
}

constexpr DType kOrdered[] = {DType::kF32, DType::kI32, DType::kF64, DType::kI64, DType::kF16, DType::kBF16};

TEST(AlgebraGraphs, AgreeWithTheReference) {
  const std::unique_ptr<Backend> one = MakeCpuBackend({.threads = 1}), three = MakeCpuBackend({.threads = 3});
  Backend* const backends[] = {one.get(), three.get()};
  std::mt19937_64 random(17);
  for (int i = 0; i < 120; ++i) {
    const Algebra algebra = kAlgebras[i % 4];
    const DType dtype = algebra == Algebra::kOrAnd ? DType::kBool : kOrdered[random() % 6];
    const std::string text = RandomText(algebra, dtype, /*is_ordinary=*/false, &random).Text();
    ExpectReference(text, dtype, algebra, /*has_zeros=*/true, {{3, 4}, {5, 1}, {0, 2}}, backends, &random);
  }
}

// Integers have no infinities there: an ordinary sum of the zero wraps around.
TEST(AlgebraGraphs, OrdinaryOnesWithSuchProductsAgreeWithTheReference) {
  const std::unique_ptr<Backend> one = MakeCpuBackend({.threads = 1}), three = MakeCpuBackend({.threads = 3});
  Backend* const backends[] = {one.get(), three.get()};
  std::mt19937_64 random(18);
  constexpr Algebra kChosen[] = {Algebra::kMaxPlus, Algebra::kMinPlus, Algebra::kOrAnd};
  for (int i = 0; i < 90; ++i) {
    const Algebra algebra = kChosen[i % 3];
    const DType dtype = algebra == Algebra::kOrAnd ? DType::kBool : kOrdered[random() % 6];
    const std::string text = RandomText(algebra, dtype, /*is_ordinary=*/true, &random).Text();
    ExpectReference(text, dtype, algebra, /*has_zeros=*/false, {{3, 4}, {5, 1}, {33, 18}}, backends, &random);
  }
}

TEST(AlgebraGraphs, OnesOfOneTextInTwoAlgebrasAreTwoPrograms) {
  const std::string text = "{\n  %x = input : f32[2]\n  %y = add(%x, %x)\n  output \"y\" = %y\n}";
  const ProgramKey max = MakeProgramKey(ParsedGraph("graph \"g\" algebra max_plus " + text), {});
  const ProgramKey min = MakeProgramKey(ParsedGraph("graph \"g\" algebra min_plus " + text), {});
  EXPECT_FALSE(max.fingerprint == min.fingerprint);
}

TEST(AlgebraGraphs, RefusalsNameTheNodeThatTheClientWrote) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  const auto reason = [&](const std::string& node) {
    const auto program = Compile(
        ParsedGraph("graph \"g\" algebra max_plus {\n  %x = input : f32[2,2]\n  %a = add(%x, %x)\n  %bad = " + node +
                    "\n  output \"y\" = %a\n}"),
        {.device = "cpu:0"}, Fingerprint(), backend.get());
    EXPECT_FALSE(program.ok()) << node;
    const RefusalDetail detail = DetailOf(program.status()).value_or(RefusalDetail{});
    EXPECT_EQ(detail.node, "bad") << program.status();
    return detail.reason;
  };
  EXPECT_EQ(reason("maximum(%x, %x)"), "OP_OUTSIDE_ALGEBRA");
  EXPECT_EQ(reason("convert(%x) {dtype = f64}"), "OP_OUTSIDE_ALGEBRA");
  EXPECT_EQ(reason("tensord.linalg.v1.Cholesky(%x)"), "OP_OUTSIDE_ALGEBRA");
}

TEST(AlgebraGraphs, InstructionsKnowTheirAlgebraAndTheOpTheyAreOf) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  const auto program = Compile(ParsedGraph(R"(graph "g" algebra min_plus {
    %a = input : f32[30,n]
    %b = input : f32[n,40]
    %y = tensord.einsum.v1.Einsum(%a, %b) {equation = "ij,jk->ik"}
    output "y" = %y
  })"),
                               {.device = "cpu:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  int products = 0;
  for (const ExecInstruction& instruction : (*program)->program().instructions) {
    if (!Is(*instruction.op, CoreOp::kDotGeneral)) continue;
    ++products;
    EXPECT_EQ(instruction.attrs.Int("algebra"), static_cast<int64_t>(Algebra::kMinPlus));
    EXPECT_EQ(instruction.written_op().name, "tensord.einsum.v1.Einsum");
  }
  EXPECT_EQ(products, 1);
}

TEST(AlgebraGraphs, ExplainNamesTheAlgebraAndTheKernel) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  const auto explained = [&](const std::string& type, const std::string& attrs) {
    const auto program = Compile(
        ParsedGraph("graph \"g\" {\n  %x = input : " + type +
                    "\n  %y = dot_general(%x, %x) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]" +
                    attrs + "}\n  output \"y\" = %y\n}"),
        {.device = "cpu:0"}, Fingerprint(), backend.get());
    EXPECT_TRUE(program.ok()) << program.status();
    return ExplainProgram(**program);
  };
  const std::string paths = explained("f32[300,300]", ", algebra = min_plus");
  EXPECT_THAT(paths, testing::HasSubstr("dot_general in min_plus\n"));
  EXPECT_THAT(paths, testing::HasSubstr("kernel  min_plus, packed blocks of "));
  // An ordinary product of BOOL has the same kernel.
  for (const char* attrs : {"", ", algebra = or_and"}) {
    EXPECT_THAT(explained("bool[300,300]", attrs), testing::HasSubstr("kernel  or_and, 64 rows a word\n")) << attrs;
  }
}

}  // namespace
}  // namespace tensord
