#include "engine/families/einsum/equation.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Equation Parsed(absl::string_view text) {
  absl::StatusOr<Equation> equation = ParseEquation(text);
  EXPECT_TRUE(equation.ok()) << equation.status();
  return equation.ok() ? *std::move(equation) : Equation();
}

TEST(Equation, HasATermAnOperand) {
  const Equation equation = Parsed("ij,,jKK->iji");
  EXPECT_THAT(equation.operands, ElementsAre(ElementsAre('i', 'j'), IsEmpty(), ElementsAre('j', 'K', 'K')));
  EXPECT_THAT(equation.output, ElementsAre('i', 'j', 'i'));
  EXPECT_THAT(equation.groups, IsEmpty());
}

TEST(Equation, OfOneScalarIsAnArrow) {
  const Equation equation = Parsed("->");
  EXPECT_THAT(equation.operands, ElementsAre(IsEmpty()));
  EXPECT_THAT(equation.output, IsEmpty());
}

TEST(Equation, ReadsCharactersNotBytes) {
  const Equation equation = Parsed("aé,é字,字𝒳->𝒳");
  EXPECT_THAT(equation.operands,
              ElementsAre(ElementsAre('a', 0xE9), ElementsAre(0xE9, 0x5B57), ElementsAre(0x5B57, 0x1D4B3)));
  EXPECT_THAT(equation.output, ElementsAre(0x1D4B3));
}

TEST(Equation, MarksEllipses) {
  const Equation equation = Parsed("...i, j... -> ...");
  EXPECT_THAT(equation.operands, ElementsAre(ElementsAre(kEllipsis, 'i'), ElementsAre('j', kEllipsis)));
  EXPECT_THAT(equation.output, ElementsAre(kEllipsis));
}

TEST(Equation, ContractsGroupsFromLeftToRight) {
  EXPECT_THAT(Parsed("(ij,jk),kl->il").groups, ElementsAre(Pair(0, 1), Pair(3, 2)));
  EXPECT_THAT(Parsed("ij,(jk,kl,lm),mn->in").groups, ElementsAre(Pair(1, 2), Pair(5, 3), Pair(0, 6), Pair(7, 4)));
  EXPECT_THAT(Parsed("((a,(a,a)),a)->a").groups, ElementsAre(Pair(1, 2), Pair(0, 4), Pair(5, 3)));
  EXPECT_THAT(Parsed("(i)->i").groups, IsEmpty());
}

TEST(Equation, OfManyParenthesesIsReadWithoutRecursion) {
  constexpr size_t kDeep = 200'000;
  const Equation equation = Parsed(std::string(kDeep, '(') + "i" + std::string(kDeep, ')') + "->i");
  EXPECT_THAT(equation.operands, ElementsAre(ElementsAre('i')));
}

TEST(Equation, RefusesWhatIsNoText) {
  for (const std::string text : {"\xff->", "i\xc3->i", "i->\xed\xa0\x80", "a\tb\x01->", "\xe2\x80\x8b->"}) {
    EXPECT_EQ(ParseEquation(text).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tensord
