#include "clients/cli/programs/explain_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kExplainText[] = R"(program "a \"graph\"" on cpu:0, column-major on the wire
  3 instructions, 2 segments in 1 session

passes (nodes)                        before     after
  fuse                                     3         3  changed

values
  %0 input "x : %9 = y"  argument 0            : f32[2,6]
  %1 constant            constant 0            : f32[]
  %4 node "the \\ node"  result 0, view of %3  : f32[12]
  %3 node "b"            result 0              : f32[2,6]
  output "y" = %4

guards
  node "b": n == m, else "sizes differ"

stage 1, when the host has read %3 and decided ?b, at most min(n,3), %1 and decided ?c, at most n

session 0
  segment 0: fused: add multiply
    %3, %5 = fused(%0!, %1, %0) {space = 2}
    types   (f32[2,6], f32[], f32[2,6]) -> f32[2,6], f32[2,6]
    nodes   "a, \"quoted\"", "b"
    moves   96 bytes: 48 read, 48 written
    kernel  tiles of 512
    | v0 = load t0[0 + 1*i0] : f32 full
    | session 7
  a line of a newer server
  segment 1: iota
    %6 = iota()
    nodes   "i"
)";

TEST(ExplainTextTest, ReadsEveryForm) {
  const auto program = ParseExplainText(kExplainText);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->name, "a \"graph\"");
  EXPECT_EQ(program->device, "cpu:0");
  ASSERT_EQ(program->values.size(), 4u);
  EXPECT_EQ(program->values.at(0).kind, ExplainedProgram::ValueKind::kInput);
  EXPECT_EQ(program->values.at(0).name, "x : %9 = y");
  EXPECT_EQ(program->values.at(0).type, "f32[2,6]");
  EXPECT_EQ(program->values.at(1).kind, ExplainedProgram::ValueKind::kConstant);
  EXPECT_EQ(program->values.at(4).name, "the \\ node");
  EXPECT_EQ(program->values.at(4).view_of, 3);
  EXPECT_EQ(program->values.at(3).view_of, -1);
  ASSERT_EQ(program->outputs.size(), 1u);
  EXPECT_EQ(program->outputs[0].value, 4);
  ASSERT_EQ(program->decisions.size(), 2u);
  EXPECT_EQ(program->decisions[0].symbol, "?b");
  EXPECT_EQ(program->decisions[1].symbol, "?c");
  EXPECT_EQ(program->decisions[1].value, 1);
  ASSERT_EQ(program->sessions.size(), 1u);
  EXPECT_EQ(program->sessions[0].stage, 1);
  ASSERT_EQ(program->sessions[0].segments.size(), 2u);
  const ExplainedProgram::Segment& fused = program->sessions[0].segments[0];
  EXPECT_EQ(fused.kernel, "fused: add multiply");
  EXPECT_THAT(fused.results, ElementsAre(3, 5));
  EXPECT_THAT(fused.operands, ElementsAre(0, 1, 0));
  EXPECT_THAT(fused.nodes, ElementsAre("a, \"quoted\"", "b"));
  EXPECT_EQ(fused.moves, "96 bytes: 48 read, 48 written");
  EXPECT_THAT(program->sessions[0].segments[1].operands, IsEmpty());
}

TEST(ExplainTextTest, ATextOfSomethingElseIsRefused) {
  EXPECT_EQ(ParseExplainText("one segment").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ParseExplainText("").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ParseExplainText("program g").status().code(), absl::StatusCode::kNotFound);
}

// Cut anywhere, or with any one character gone, the text is still read or refused.
TEST(ExplainTextTest, DamagedTextIsReadAsFarAsItGoes) {
  const std::string text = kExplainText;
  for (size_t i = 0; i <= text.size(); ++i) {
    const auto cut = ParseExplainText(absl::string_view(text).substr(0, i));
    if (cut.ok()) {
      EXPECT_LE(cut->sessions.size(), 1u);
    }
    std::string shorter = text;
    if (i < text.size()) shorter.erase(i, 1);
    const auto read = ParseExplainText(shorter);
    if (read.ok()) {
      EXPECT_LE(read->values.size(), 4u) << i;
    }
  }
}

}  // namespace
}  // namespace tensord::cli
