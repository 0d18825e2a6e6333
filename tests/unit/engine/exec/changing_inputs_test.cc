#include "engine/exec/changing_inputs.h"

#include <string>
#include <vector>

#include "engine/ir/verifier.h"
#include "gtest/gtest.h"
#include "tests/testlib/parsed_graph.h"

namespace tensord {
namespace {

// Of the program that no pass has touched.
std::vector<bool> Answers(const std::string& nodes) {
  Graph graph = ParsedGraph("graph \"g\" {\n" + nodes + "}\n");
  EXPECT_TRUE(InferTypes(&graph).ok());
  ExecProgram program = LowerToProgram(graph);
  program.inputs.assign(graph.inputs().begin(), graph.inputs().end());
  return InputsThatMayChange(program);
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

}  // namespace
}  // namespace tensord
