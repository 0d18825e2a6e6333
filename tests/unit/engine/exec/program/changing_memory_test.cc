#include "engine/exec/program/changing_memory.h"

#include <string>
#include <vector>

#include "engine/ir/verifier.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord {
namespace {

// The program that no pass has touched.
ExecProgram Untouched(const std::string& nodes) {
  Graph graph = ParsedGraph("graph \"g\" {\n" + nodes + "}\n");
  EXPECT_TRUE(InferTypes(&graph).ok());
  ExecProgram program = LowerToProgram(graph);
  program.inputs.assign(graph.inputs().begin(), graph.inputs().end());
  return program;
}

std::vector<bool> Answers(const std::string& nodes) { return InputsThatMayChange(Untouched(nodes)); }

// Returns the answers for the outputs' slots.
std::vector<bool> OfOutputs(const std::string& nodes) {
  const ExecProgram program = Untouched(nodes);
  const std::vector<bool> by_slot = ResultsThatMayChange(program);
  std::vector<bool> answers;
  for (const ProgramOutput& output : program.outputs) answers.push_back(by_slot[static_cast<size_t>(output.slot)]);
  return answers;
}

TEST(ChangingInputs, FloatsThatAreComputedWithMay) {
  EXPECT_EQ(Answers("%x = input : f32[4,6]\n%y = exp(%x)\noutput \"y\" = %y\n"), std::vector<bool>{true});
  EXPECT_EQ(Answers("%x = input : f64[4,6]\n%t = transpose(%x) {permutation = [1, 0]}\n%y = exp(%t)\n"
                    "output \"y\" = %y\n"),
            std::vector<bool>{true});
  EXPECT_EQ(Answers("%x = input : c64[4]\n%y = input : c64[4]\n%z = multiply(%x, %y)\noutput \"z\" = %z\n"),
            (std::vector<bool>{true, true}));
}

TEST(ChangingInputs, WhatIsHandedOutMayNot) {
  EXPECT_EQ(Answers("%x = input : f32[4]\noutput \"y\" = %x\n"), std::vector<bool>{false});
  // A reshape is a view of the input's memory, and the response would be sent from there.
  EXPECT_EQ(Answers("%x = input : f32[4,6]\n%y = reshape(%x) {shape = [24]}\noutput \"y\" = %y\n"),
            std::vector<bool>{false});
  EXPECT_EQ(Answers("%x = input : f32[4,6]\n%s = slice(%x) {start_indices = [0, 2], limit_indices = [4, 5]}\n"
                    "%y = reshape(%s) {shape = [12]}\n%z = exp(%x)\noutput \"y\" = %y\noutput \"z\" = %z\n"),
            std::vector<bool>{false});
}

TEST(ChangingInputs, NumbersThatCountOrPointMayNot) {
  EXPECT_EQ(Answers("%x = input : i64[4]\n%y = add(%x, %x)\noutput \"y\" = %y\n"), std::vector<bool>{false});
  EXPECT_EQ(Answers("%x = input : bool[4]\n%y = not(%x)\noutput \"y\" = %y\n"), std::vector<bool>{false});
  // Kernels of which nobody has said so: a gather of floats by indices.
  EXPECT_EQ(Answers("%x = input : f32[8]\n%i = input : i64[1]\n%y = dynamic_slice(%x, %i) {slice_sizes = [3]}\n"
                    "output \"y\" = %y\n"),
            (std::vector<bool>{false, false}));
}

TEST(ChangingResults, WhatIsWrittenAndNotReadMayOfAnyDtype) {
  EXPECT_EQ(OfOutputs("%x = input : i64[4]\n%y = add(%x, %x)\n%z = compare(%x, %y) {direction = lt}\n"
                      "output \"z\" = %z\n"),
            std::vector<bool>{true});
  EXPECT_EQ(OfOutputs("%x = input : i64[4,6]\n%y = transpose(%x) {permutation = [1, 0]}\noutput \"y\" = %y\n"),
            std::vector<bool>{true});
}

TEST(ChangingResults, NumbersThatAreComputedWithAgainMay) {
  EXPECT_EQ(OfOutputs("%x = input : f32[4]\n%y = exp(%x)\n%z = sin(%y)\noutput \"y\" = %y\noutput \"z\" = %z\n"),
            (std::vector<bool>{true, true}));
  // A copy of them is no memory that changes.
  EXPECT_EQ(OfOutputs("%x = input : f32[4,6]\n%y = exp(%x)\n%z = transpose(%y) {permutation = [1, 0]}\n"
                      "output \"y\" = %y\noutput \"z\" = %z\n"),
            (std::vector<bool>{true, true}));
}

TEST(ChangingResults, WhatIsReadAgainAsACountOrAConditionMayNot) {
  EXPECT_EQ(OfOutputs("%x = input : i64[4]\n%y = add(%x, %x)\n%z = add(%y, %x)\noutput \"y\" = %y\n"
                      "output \"z\" = %z\n"),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(OfOutputs("%x = input : f32[8]\n%i = input : i64[1]\n%j = add(%i, %i)\n"
                      "%y = dynamic_slice(%x, %j) {slice_sizes = [3]}\noutput \"j\" = %j\noutput \"y\" = %y\n"),
            (std::vector<bool>{false, true}));
  // Bytes that are no boolean would go on into another tensor.
  EXPECT_EQ(OfOutputs("%x = input : bool[4,6]\n%y = not(%x)\n%z = transpose(%y) {permutation = [1, 0]}\n"
                      "output \"y\" = %y\noutput \"z\" = %z\n"),
            (std::vector<bool>{false, true}));
}

TEST(ChangingResults, ArgumentsAndKernelsThatNobodyLookedAtMayNot) {
  EXPECT_EQ(OfOutputs("%x = input : f32[4]\noutput \"x\" = %x\n"), std::vector<bool>{false});
  EXPECT_EQ(OfOutputs("%x = input : f32[4,4]\n%y = tril(%x)\noutput \"y\" = %y\n"), std::vector<bool>{false});
}

}  // namespace
}  // namespace tensord
