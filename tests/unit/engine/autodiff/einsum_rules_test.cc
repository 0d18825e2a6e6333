#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/autodiff/rule_case.h"

namespace tensord {
namespace {

// An einsum of inputs with these shapes. Each goes through a sine, so that the second derivative is none of zeros.
RuleCase EinsumCase(const std::string& attributes, const std::vector<std::string>& shapes) {
  RuleCase c{attributes, "", ""};
  std::string operands;
  for (size_t i = 0; i < shapes.size(); ++i) {
    absl::StrAppend(&c.inputs, "%x", i, " = input : T[", shapes[i], "]\n");
    absl::StrAppend(&c.nodes, "%s", i, " = sin(%x", i, ")\n");
    absl::StrAppend(&operands, i == 0 ? "%s" : ", %s", i);
  }
  absl::StrAppend(&c.nodes, "%y = tensord.einsum.v1.Einsum(", operands, ") {", attributes, "}");
  return c;
}

struct EquationCase {
  std::string equation;
  std::vector<std::string> shapes;
};

void ExpectRightEinsums(const std::vector<EquationCase>& cases) {
  for (const EquationCase& c : cases) {
    const RuleCase rule = EinsumCase(absl::StrCat("equation = \"", c.equation, "\""), c.shapes);
    ExpectRightRule(rule, "f64");
    ExpectRightRule(rule, "c128");
  }
}

TEST(EinsumDerivatives, AreThoseOfOneOperand) {
  ExpectRightEinsums({{"ij->ji", {"2,3"}},
                      {"ij->i", {"2,3"}},
                      {"ij->", {"2,3"}},
                      {"ij->ij", {"2,3"}},
                      {"ii->i", {"3,3"}},
                      {"ii->", {"3,3"}},
                      {"i->ii", {"3"}},
                      {"i->iii", {"2"}},
                      {"ii->ii", {"3,3"}},
                      {"iij->jji", {"2,2,3"}},
                      {"ijij->j", {"2,3,2,3"}},
                      {"iijj->", {"2,2,3,3"}},
                      {"...i->i...", {"2,3,2"}},
                      {"->", {""}}});
}

TEST(EinsumDerivatives, AreThoseOfTwoOperands) {
  ExpectRightEinsums({{"ij,jk->ik", {"2,3", "3,2"}},
                      {"ij,jk->ki", {"2,3", "3,2"}},
                      {"i,i->", {"3", "3"}},
                      {"i,j->ij", {"2", "3"}},
                      {"i,->i", {"3", ""}},
                      {"bij,bjk->bik", {"2,2,3", "2,3,2"}},
                      {"ijk,jl->il", {"2,3,2", "3,2"}},
                      {"ij,ij->ij", {"2,3", "2,3"}},
                      {"ii,i->i", {"3,3", "3"}},
                      {"ii,j->", {"3,3", "2"}},
                      {"iik,jj->kj", {"2,2,3", "2,2"}},
                      {"ij,j->ii", {"2,3", "3"}},
                      {"ij,jk->ik", {"2,0", "0,2"}},
                      {"ij,jk->ik", {"0,3", "3,2"}},
                      {"ij,jk->ik", {"1,1", "1,1"}},
                      {"...ij,...jk->...ik", {"1,2,3", "4,3,2"}},
                      {"...,...->...", {"3,1,2", "4,1"}},
                      {"i...,i...->...", {"2,3", "2,1"}}});
}

TEST(EinsumDerivatives, AreThoseOfManyOperands) {
  ExpectRightEinsums({{"ab,bc,cd,da->", {"2,3", "3,2", "2,3", "3,2"}},
                      {"ia,ib,ic->abc", {"2,2", "2,2", "2,2"}},
                      {"aa,ab,bb->ab", {"2,2", "2,3", "3,3"}},
                      {"ik,k,kj->ij", {"2,3", "3", "3,2"}},
                      {"i,i,i->", {"3", "3", "3"}},
                      {"i,j,k->kij", {"2", "3", "2"}},
                      {"ij,k,l->i", {"2,3", "2", "2"}},
                      {"ij,jk,kk,->ii", {"2,3", "3,2", "2,2", ""}},
                      {"(ij,jk),(kl,lm)->im", {"2,3", "3,2", "2,3", "3,2"}},
                      {"...i,...j,ij->...", {"2,3", "1,2", "3,2"}},
                      {"a,ab,bc,cd,de,e->", {"2", "2,2", "2,2", "2,2", "2,2", "2"}}});
  for (const char* attributes :
       {"operands = [[0, 1], [1, 2], [2, 3]], output = [[3, 0]]",
        "equation = \"ij,jk,kl->il\", path = [[0, 2], [0, 1]]", "equation = \"ij,jk,kl->il\", path = [[0, 1, 2]]",
        "equation = \"ij,jk,kl->il\", optimizer = left_to_right",
        "equation = \"ij,jk,kl->il\", largest_intermediate = 6"}) {
    ExpectRightRule(EinsumCase(attributes, {"2,3", "3,2", "2,2"}), "c128");
  }
}

TEST(EinsumDerivatives, AreThoseOfAnOperandThatIsThereTwice) {
  for (const char* dtype : {"f64", "c128"}) {
    ExpectRightRule({"quadratic form", "%x = input : T[3] %a = input : T[3,3]",
                     "%y = tensord.einsum.v1.Einsum(%x, %a, %x) {equation = \"i,ij,j->\"}"},
                    dtype);
    ExpectRightRule(
        {"cube", "%x = input : T[3]", "%y = tensord.einsum.v1.Einsum(%x, %x, %x) {equation = \"i,i,i->i\"}"}, dtype);
  }
}

TEST(EinsumDerivatives, AreThoseOfSymbolicSizes) {
  ExpectRightEinsums({{"ij,jk->ik", {"n,2", "2,m"}},
                      {"ij->i", {"n,m"}},
                      {"ij->", {"n,m"}},
                      {"ii->", {"n,n"}},
                      {"i->ii", {"n"}},
                      {"ij,jk,kl->il", {"n,2", "2,m", "m,3"}},
                      {"...i,i->...", {"n,3", "3"}},
                      {"...i,...i->...", {"n,3", "n,3"}}});
}

// Symbols that are 1, 3 or 0 as the run decides.
TEST(EinsumDerivatives, AreThoseOfEllipsesOfWhichOnlyTheRunKnowsWhatRepeats) {
  const std::vector<EquationCase> cases = {{"...i,...i->...", {"n,2", "m,2"}},
                                           {"...i,...j->...ij", {"n,1,2", "3,m,2"}},
                                           {"...,i->i...", {"n", "2"}},
                                           {"i...,...i->...", {"2,n", "3,2"}},
                                           {"...i,ij,...j->...", {"n,2", "2,3", "m,3"}},
                                           {"...,...,...,...->...", {"n", "m", "n", "1"}}};
  for (const EquationCase& c : cases) {
    const RuleCase rule = EinsumCase(absl::StrCat("equation = \"", c.equation, "\""), c.shapes);
    for (const auto& [n, m] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {3, 1}, {3, 3}, {1, 1}, {1, 0}, {0, 1}}) {
      if (n == 0 && c.shapes[1][0] != 'm') continue;  // what it repeats to is known
      ExpectRightRule(rule, "c128", {{"n", n}, {"m", m}});
    }
  }
}

TEST(EinsumDerivatives, AreThoseOfExtremesInOtherAlgebras) {
  const std::vector<EquationCase> cases = {{"ij->i", {"2,3"}},
                                           {"ij->", {"2,3"}},
                                           {"ij->ji", {"2,3"}},
                                           {"ii->", {"3,3"}},
                                           {"ii->i", {"3,3"}},
                                           {"ij,jk->ik", {"2,3", "3,2"}},
                                           {"ij,jk->ki", {"n,3", "3,2"}},
                                           {"i,i->", {"3", "3"}},
                                           {"i,j->ij", {"2", "n"}},
                                           {"ij,k->i", {"2,3", "2"}},
                                           {"ii,i->i", {"3,3", "3"}},
                                           {"ij,jk,kl->il", {"2,3", "3,2", "2,2"}},
                                           {"ij,jj,jk,k->", {"2,3", "3,3", "3,n", "n"}},
                                           {"...ij,...jk->...ik", {"1,2,3", "4,3,2"}},
                                           {"...,...,...->...", {"n", "3", "1"}},
                                           {"ij,jk->ik", {"0,3", "3,2"}},
                                           {"ij,jk->ik", {"1,1", "1,1"}}};
  for (const char* algebra : {"max_plus", "min_plus", "max_times"}) {
    for (const EquationCase& c : cases) {
      RuleCase rule = EinsumCase(absl::StrCat("equation = \"", c.equation, "\", algebra = ", algebra), c.shapes);
      absl::StrReplaceAll({{"sin(", "exp("}}, &rule.nodes);  // the elements of max_times are not negative
      ExpectRightRule(rule, "f64", {{"n", 3}});
    }
  }
}

// Off the diagonal are zeros of the algebra, which no operand moves.
TEST(EinsumDerivatives, OfADiagonalInAnotherAlgebraAreThoseOfTheDiagonal) {
  const RuleCase c{"a diagonal", "%x0 = input : T[3,2]",
                   "%d = tensord.einsum.v1.Einsum(%x0) {equation = \"ij->ii\", algebra = max_plus} %z = constant() "
                   "{value = f64[] [-9]} %b = broadcast_in_dim(%z) {shape = [3, 3]} %y = maximum(%d, %b)"};
  ExpectRightRule(c, "f64");
}

TEST(EinsumDerivatives, HaveAsManyNodesForEachOperandOfAChain) {
  const auto nodes_of = [](int operands) {
    std::vector<std::string> shapes;
    std::string lists;
    for (int i = 0; i < operands; ++i) {
      shapes.push_back("2,2");
      absl::StrAppend(&lists, i == 0 ? "[" : ", [", i, ", ", i + 1, "]");
    }
    const RuleCase c = EinsumCase(
        absl::StrCat("operands = [", lists, "], output = [[0, ", operands, "]], optimizer = left_to_right"), shapes);
    size_t edges = 0;
    const auto vjp = Differentiate(Parsed(c, "f64"), {.mode = DerivativeMode::kVjp, .wrt = {}});
    EXPECT_TRUE(vjp.ok()) << vjp.status();
    if (!vjp.ok()) return edges;
    for (const Node& node : vjp->nodes()) edges += 1 + node.operands.size();
    return edges;
  };
  EXPECT_LE(nodes_of(400), 11 * nodes_of(40));
}

}  // namespace
}  // namespace tensord
