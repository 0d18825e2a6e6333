#include "engine/exec/program/exec_program.h"

#include <random>

#include "engine/exec/program/program_passes.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/valid_graph.h"

namespace tensord {
namespace {

TEST(MarkLastUses, LastUsesAreTheLastReadsOfWhatIsNoOutput) {
  std::mt19937_64 random(3);
  int64_t last_uses = 0;
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE(i);
    ExecProgram program = LowerToProgram(RandomValidGraph({.max_nodes = 40, .symbols = true}, &random));
    for (const ExecInstruction& instruction : program.instructions) {
      ASSERT_EQ(instruction.last_use.size(), instruction.operands.size());
      EXPECT_THAT(instruction.last_use, testing::Each(false)) << "nobody has looked";
    }
    EXPECT_FALSE(program.knows_last_uses);
    MarkLastUses(&program);
    EXPECT_TRUE(program.knows_last_uses);
    for (size_t k = 0; k < program.instructions.size(); ++k) {
      const ExecInstruction& instruction = program.instructions[k];
      ASSERT_EQ(instruction.last_use.size(), instruction.operands.size());
      for (size_t p = 0; p < instruction.operands.size(); ++p) {
        const Slot slot = instruction.operands[p];
        bool read_again = false;
        for (const ProgramOutput& output : program.outputs) read_again = read_again || output.slot == slot;
        for (size_t later = p + 1; later < instruction.operands.size(); ++later) {
          read_again = read_again || instruction.operands[later] == slot;
        }
        for (size_t after = k + 1; after < program.instructions.size(); ++after) {
          for (Slot other : program.instructions[after].operands) read_again = read_again || other == slot;
        }
        EXPECT_EQ(instruction.last_use[p], !read_again) << ToString(program) << instruction.node << " operand " << p;
        last_uses += instruction.last_use[p];
      }
    }
  }
  EXPECT_GT(last_uses, 1000);
}

TEST(LowerToProgram, ConstantsBecomeSlotsAndShapeSourcesGo) {
  absl::StatusOr<Graph> graph = ParseGraph(R"(graph "g" {
    %x = input : f32[n]
    %k = constant() {value = f32[] [2]} : f32[]
    %b = broadcast_in_dim(%k, %x) {shape = [dim(1, 0)]} : f32[n]
    %y = add(%x, %b) : f32[n]
    output "y" = %y
  })",
                                           CoreRegistry());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const ExecProgram program = LowerToProgram(*graph);
  EXPECT_FALSE(program.is_static());
  ASSERT_EQ(program.constants.size(), 1u);
  EXPECT_EQ(program.constants[0].slot, 1);
  EXPECT_EQ(program.constants[0].value->values<float>()[0], 2.0f);
  ASSERT_EQ(program.instructions.size(), 2u);
  EXPECT_EQ(program.instructions[0].operands.size(), 1u);  // %x gave its size only
  EXPECT_EQ(program.instructions[0].node, "b");
  EXPECT_EQ(program.outputs[0].slot, 3);
}

}  // namespace
}  // namespace tensord
