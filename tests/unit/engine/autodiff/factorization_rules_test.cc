#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/literal_of.h"
#include "tests/unit/engine/autodiff/rule_case.h"

namespace tensord {
namespace {

struct Size {
  int rows, columns;
};
constexpr Size kSizes[] = {{3, 3}, {4, 2}, {2, 4}, {1, 1}, {3, 1}, {1, 3}};

// Numbers far from each other, in a column with as many zeros behind it as asked for.
std::string Weights(int count) {
  std::vector<std::string> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(absl::StrCat(4 + 3 * i));
  return absl::StrCat("f64[", count, "] [", absl::StrJoin(numbers, ", "), "]");
}

// Regular matrices %a in a batch of two: random numbers %x beside a heavy diagonal, upside down if asked for. The
// constant %w has a number for each singular value; REAL stands for the dtype of its values.
RuleCase MatricesCase(const std::string& name, Size size, const std::string& nodes, absl::string_view dtype,
                      bool upside_down = false, const std::string& inputs = "") {
  const int k = std::min(size.rows, size.columns);
  const std::string shape = absl::StrCat("[", size.rows, ", ", size.columns, ", 2]");
  RuleCase c{absl::StrCat(name, " ", size.rows, "x", size.columns),
             absl::StrCat("%x = input : T[", size.rows, ",", size.columns, ",2] ", inputs),
             absl::StrCat("%d = constant() {value = ", Weights(k), "} %w = convert(%d) {dtype = DTYPE}\n",
                          "%e = embed_diag(%w) {axis_a = 0, axis_b = 1}\n",
                          "%zero = constant() {value = f64[] [0]} %z = convert(%zero) {dtype = DTYPE}\n",
                          "%p = pad(%e, %z) {edge_padding_low = [0, 0], edge_padding_high = [", size.rows - k, ", ",
                          size.columns - k, "]}\n", "%q = reverse(%p) {dimensions = [", upside_down ? "0" : "", "]}\n",
                          "%b = broadcast_in_dim(%q) {shape = ", shape, ", broadcast_dimensions = [0, 1]}\n",
                          "%a = add(%x, %b)\n", nodes)};
  c.nodes = absl::StrReplaceAll(c.nodes, {{"DTYPE", dtype},
                                          {"MATRICES", shape},
                                          {"LEFT", absl::StrCat("[", size.rows, ", ", k, ", 2]")},
                                          {"RIGHT", absl::StrCat("[", k, ", ", size.columns, ", 2]")}});
  return c;
}

// Returns the node of a product of %l and %r that contracts these axes.
std::string Product(int left, int right) {
  return absl::StrCat("dot_general(%l, %r) {lhs_contracting_dimensions = [", left, "], rhs_contracting_dimensions = [",
                      right, "], lhs_batching_dimensions = [2], rhs_batching_dimensions = [2]}");
}

TEST(FactorizationDerivatives, AreThoseOfQr) {
  for (const char* dtype : {"f64", "c128"}) {
    for (const Size size : kSizes) {
      for (const char* result : {"", ":1"}) {
        const std::string nodes = absl::StrCat("%s:2 = tensord.linalg.v1.Qr(%a)");
        ExpectRightRule(MatricesCase("Qr", size, absl::StrCat(nodes, " %y = negate(%s", result, ")"), dtype), dtype);
        if (size.rows > size.columns) continue;
        ExpectRightRule(
            MatricesCase("full Qr", size, absl::StrCat(nodes, " {full = true} %y = negate(%s", result, ")"), dtype),
            dtype);
      }
      ExpectRightRule(MatricesCase("Q and R", size,
                                   R"(%s:2 = tensord.linalg.v1.Qr(%a)
                        %f = sin(%s) %l = tril(%f) {diagonal = 0} %r = cos(%s:1) %y = )" +
                                       Product(1, 0),
                                   dtype),
                      dtype);
    }
  }
}

TEST(FactorizationDerivatives, AreThoseOfLu) {
  for (const char* dtype : {"f64", "c128"}) {
    for (const Size size : kSizes) {
      for (const bool upside_down : {false, true}) {
        for (const char* result : {":1", ":2"}) {
          ExpectRightRule(
              MatricesCase("Lu", size, absl::StrCat("%s:4 = tensord.linalg.v1.Lu(%a) %y = negate(%s", result, ")"),
                           dtype, upside_down),
              dtype);
        }
      }
    }
    ExpectRightRule(MatricesCase("P", {3, 3}, R"(%s:4 = tensord.linalg.v1.Lu(%a) %l = add(%s, %s) %r = add(%a, %a)
                      %y = )" + Product(1, 0),
                                 dtype, true),
                    dtype);
  }
}

TEST(FactorizationDerivatives, AreThoseOfSingularVectors) {
  const std::string left =
      "%wl = broadcast_in_dim(%w) {shape = LEFT, broadcast_dimensions = [1]} %l = multiply(%s, %wl) ";
  const std::string right =
      "%wr = broadcast_in_dim(%w) {shape = RIGHT, broadcast_dimensions = [0]} %r = multiply(%s:2, %wr) ";
  for (const char* dtype : {"f64", "c128"}) {
    for (const Size size : kSizes) {
      for (const bool full : {false, true}) {
        if (full && size.rows != size.columns) continue;
        const std::string svd = absl::StrCat("%s:3 = tensord.linalg.v1.Svd(%a) {full = ", full ? "true} " : "false} ");
        ExpectRightRule(MatricesCase("U W U^H", size, svd + left + "%r = conj(%s) %y = " + Product(1, 1), dtype),
                        dtype);
        ExpectRightRule(MatricesCase("V W V^H", size, svd + right + "%l = conj(%s:2) %y = " + Product(0, 0), dtype),
                        dtype);
        ExpectRightRule(MatricesCase("U W V^H", size, svd + left + "%r = add(%s:2, %s:2) %y = " + Product(1, 0), dtype),
                        dtype);
        ExpectRightRule(MatricesCase("S", size, svd + "%y = negate(%s:1)", dtype), dtype);
      }
    }
    for (const Size size : kSizes) {
      ExpectRightRule(MatricesCase("SvdValues", size, "%y = tensord.linalg.v1.SvdValues(%a)", dtype), dtype);
      ExpectRightRule(MatricesCase("values of a full Svd", size,
                                   "%s:3 = tensord.linalg.v1.Svd(%a) {full = true} %y = negate(%s:1)", dtype),
                      dtype);
    }
  }
}

TEST(FactorizationDerivatives, AreThoseOfEigenvalues) {
  for (const char* dtype : {"f64", "c128"}) {
    for (const Size size : {Size{3, 3}, Size{1, 1}}) {
      for (const char* nodes :
           {"%y = tensord.linalg.v1.EigValues(%a)", "%s:2 = tensord.linalg.v1.Eig(%a) %y = negate(%s)"}) {
        const RuleCase c = MatricesCase("eigenvalues", size, nodes, dtype);
        ExpectRightDerivatives(Parsed(c, dtype), c, dtype);
      }
    }
  }
}

TEST(FactorizationDerivatives, AreThoseOfPseudoInverses) {
  for (const char* dtype : {"f64", "c128"}) {
    for (const Size size : kSizes) {
      ExpectRightRule(MatricesCase("PseudoInverse", size, "%y = tensord.linalg.v1.PseudoInverse(%a)", dtype), dtype);
      ExpectRightRule(MatricesCase("PseudoInverse", size,
                                   "%y = tensord.linalg.v1.PseudoInverse(%a) {relative_cutoff = 1e-5}", dtype),
                      dtype);
      const std::string right = absl::StrCat("%c = input : T[", size.rows, ",2,2]");
      ExpectRightRule(
          MatricesCase("LeastSquares", size, "%y = tensord.linalg.v1.LeastSquares(%a, %c)", dtype, false, right),
          dtype);
      ExpectRightRule(MatricesCase("LeastSquares of A", size, R"(%y = tensord.linalg.v1.LeastSquares(%a, %b))", dtype),
                      dtype);
    }
    ExpectRightRule(MatricesCase("LeastSquares of B", {4, 2}, "%y = tensord.linalg.v1.LeastSquares(%b, %a)", dtype),
                    dtype);
  }
}

// A matrix that is kept at rank 1 has the derivative of the matrices of rank 1.
TEST(FactorizationDerivatives, OfPseudoInversesKeepTheRank) {
  for (const char* dtype : {"f64", "c128"}) {
    ExpectRightRule({"rank 1", "%u = input : T[3] %v = input : T[3]",
                     R"(%a = tensord.einsum.v1.Einsum(%u, %v) {equation = "i,j->ij"}
                        %y = tensord.linalg.v1.PseudoInverse(%a) {relative_cutoff = 1e-6})",
                     0.5, 0.9},
                    dtype);
  }
}

TEST(FactorizationDerivatives, AreThoseOfTriangularDeterminants) {
  for (const char* dtype : {"f64", "c128"}) {
    for (const char* result : {"", ":1", ":2"}) {
      ExpectRightRule(
          MatricesCase("TriangularDeterminant", {3, 3},
                       absl::StrCat("%s:3 = tensord.linalg.v1.TriangularDeterminant(%a) %y = negate(%s", result, ")"),
                       dtype),
          dtype);
    }
  }
}

TEST(FactorizationDerivatives, AreThoseOfSymbolicSizes) {
  const std::string linalg = " = tensord.linalg.v1.";
  for (const char* dtype : {"f64", "c128"}) {
    for (const char* shape : {"[n,n]", "[n,m]"}) {
      const std::string inputs = absl::StrCat("%x = input : T", shape);
      for (const std::string& nodes :
           {"%s:2" + linalg + "Qr(%x) %y = negate(%s)", "%s:2" + linalg + "Qr(%x) %y = negate(%s:1)",
            "%s:4" + linalg + "Lu(%x) %y = negate(%s:1)", "%s:4" + linalg + "Lu(%x) %y = negate(%s:2)",
            "%y" + linalg + "SvdValues(%x)", "%y" + linalg + "PseudoInverse(%x)",
            "%y" + linalg + "LeastSquares(%x, %x)",
            "%s:3" + linalg + R"(Svd(%x) %y = dot_general(%s, %s:2) {lhs_contracting_dimensions = [1],
              rhs_contracting_dimensions = [0]})"}) {
        // The numbers of the seed make well-conditioned matrices.
        ExpectRightRule({nodes, inputs, nodes, -2, 2}, dtype);
      }
    }
  }
}

TEST(FactorizationDerivatives, AreThereWithoutElements) {
  for (const char* shape : {"0,0,2", "0,2,1", "3,0,2", "2,2,0"}) {
    const std::string inputs = absl::StrCat("%x = input : T[", shape, "]");
    for (const char* nodes :
         {"%s:2 = tensord.linalg.v1.Qr(%x) %y = negate(%s:1)", "%s:2 = tensord.linalg.v1.Qr(%x) %y = negate(%s)",
          "%s:4 = tensord.linalg.v1.Lu(%x) %y = negate(%s:1)", "%s:3 = tensord.linalg.v1.Svd(%x) %y = negate(%s)",
          "%s:3 = tensord.linalg.v1.Svd(%x) %y = negate(%s:2)", "%y = tensord.linalg.v1.SvdValues(%x)"}) {
      ExpectRightRule({nodes, inputs, nodes}, "f64");
      ExpectRightRule({nodes, inputs, nodes}, "c128");
    }
  }
}

// Measures derivatives at A itself.
void ExpectRightAt(const std::vector<double>& a, Shape shape, const std::string& nodes) {
  const RuleCase c{nodes, absl::StrCat("%x = input : T[", absl::StrJoin(shape, ","), "]"), nodes};
  std::mt19937_64 random(3);
  const auto errors = MeasureDerivatives(Parsed(c, "f64"), {LiteralOf(a, shape)}, &random);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_LT(errors->jvp, 1e-6) << nodes;
  EXPECT_LT(errors->adjoint, 1e-12) << nodes;
}

TEST(FactorizationDerivatives, AreFiniteAtEqualSingularValues) {
  const std::string svd = "%s:3 = tensord.linalg.v1.Svd(%x) ";
  const std::string product = R"(%y = dot_general(%l, %r) {lhs_contracting_dimensions = [1],
                                 rhs_contracting_dimensions = [0]})";
  const std::vector<double> two_equal = {2, 0, 0, 0, 5, 0, 0, 0, 2}, all_equal = {0, 2, 0, 2, 0, 0, 0, 0, -2};
  for (const auto& a : {two_equal, all_equal}) {
    ExpectRightAt(a, {3, 3}, svd + "%l = add(%s, %s) %r = add(%s:2, %s:2) " + product);  // the polar factor
    ExpectRightAt(a, {3, 3}, svd + "%y = reduce(%s:1) {kind = sum, dimensions = [0]}");
  }
  // The projector onto the space of the two.
  ExpectRightAt(two_equal, {3, 3},
                svd + R"(%l = slice(%s) {start_indices = [0, 1], limit_indices = [3, 3]}
    %r = transpose(%l) {permutation = [1, 0]} )" +
                    product);
  ExpectRightAt({2, 0, 0, 0, 2, 0}, {3, 2},
                svd + "%r = transpose(%s) {permutation = [1, 0]} %l = add(%s, %s) " + product);
  ExpectRightAt({0, 0, 0, 3, 0, 0}, {2, 3},
                "%s = tensord.linalg.v1.SvdValues(%x) %m = multiply(%s, %s) " +
                    std::string("%y = reduce(%m) {kind = sum, dimensions = [0]}"));
}

TEST(FactorizationDerivatives, AreRefusedWhereNothingDeterminesThem) {
  struct Case {
    std::string shape, nodes, op;
  };
  for (const Case& c : std::vector<Case>{
           {"3,2", "%s:3 = tensord.linalg.v1.Svd(%x) {full = true} %y = negate(%s)", "tensord.linalg.v1.Svd"},
           {"2,3", "%s:3 = tensord.linalg.v1.Svd(%x) {full = true} %y = negate(%s:2)", "tensord.linalg.v1.Svd"},
           {"n,m", "%s:3 = tensord.linalg.v1.Svd(%x) {full = true} %y = negate(%s)", "tensord.linalg.v1.Svd"},
           {"3,2", "%s:2 = tensord.linalg.v1.Qr(%x) {full = true} %y = negate(%s)", "tensord.linalg.v1.Qr"},
           {"3,2", "%s:2 = tensord.linalg.v1.Qr(%x) {full = true} %y = negate(%s:1)", "tensord.linalg.v1.Qr"},
           {"n,m", "%s:2 = tensord.linalg.v1.Qr(%x) {full = true} %y = negate(%s)", "tensord.linalg.v1.Qr"},
           {"3,3", "%s:2 = tensord.linalg.v1.Eig(%x) %y = negate(%s:1)", "tensord.linalg.v1.Eig"},
           {"3,2", "%s:2 = tensord.linalg.v1.HouseholderQr(%x) %y = negate(%s)", "tensord.linalg.v1.HouseholderQr"},
       }) {
    const RuleCase rule{c.nodes, absl::StrCat("%x = input : T[", c.shape, "]"), c.nodes};
    const Graph graph = Parsed(rule, "f64");
    for (const DerivativeMode mode : {DerivativeMode::kJvp, DerivativeMode::kVjp}) {
      const absl::Status status = Differentiate(graph, {.mode = mode, .wrt = {}}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << c.nodes << status;
      ASSERT_TRUE(DetailOf(status).has_value());
      EXPECT_EQ(DetailOf(status)->node, "s");
      EXPECT_EQ(DetailOf(status)->op, c.op);
    }
  }
}

}  // namespace
}  // namespace tensord
