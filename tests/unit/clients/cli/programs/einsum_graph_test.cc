#include "clients/cli/programs/einsum_graph.h"

#include <complex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EinsumGraphTest, WhatIsNoEquationIsRefusedAsItWasWritten) {
  for (const char* wrong : {"ij;jk", "ij,jk->ik;", "i!j", "ij,jk-ik", "ij>ji", "i\x01"}) {
    const absl::Status refused = CheckEquation(wrong);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(refused.message()), ::testing::EndsWith(wrong));
  }
  for (const char* equation : {"", "ij,jk->ik", " (ij, jk),kl ", "...i->...", "12,23", "α,β->βα", "i\tj"}) {
    EXPECT_TRUE(CheckEquation(equation).ok()) << equation;
  }
}

TEST(EinsumGraphTest, AnOutputThatIsNotWrittenIsNumPys) {
  EXPECT_EQ(WithOutput("ij, jk"), "ij,jk->ik");
  EXPECT_EQ(WithOutput("ba"), "ba->ab");
  EXPECT_EQ(WithOutput("ii"), "ii->");
  EXPECT_EQ(WithOutput("bZ,b"), "bZ,b->Z");
  EXPECT_EQ(WithOutput("...ij,jk"), "...ij,jk->...ik");
  EXPECT_EQ(WithOutput("(ij,jk),kl"), "(ij,jk),kl->il");
  EXPECT_EQ(WithOutput(" ij -> ji "), "ij->ji");
  EXPECT_EQ(WithOutput(""), "->");
}

TEST(EinsumGraphTest, LabelsOfAnOutputAreCharactersOfAnyAlphabet) {
  EXPECT_EQ(WithOutput("αβ,βγ"), "αβ,βγ->αγ");
  EXPECT_EQ(WithOutput("γb,ba,𝐱"), "γb,ba,𝐱->aγ𝐱");
  EXPECT_EQ(WithOutput("12,23"), "12,23->13");
  EXPECT_EQ(WithOutput("a1\t(й...)"), "a1\t(й...)->...1aй");
  EXPECT_EQ(WithOutput("i*,j"), "i*,j->*ij");  // for the server to refuse
  EXPECT_EQ(WithOutput("\xCE,\xCE\xB1\xB1\x80"), "\xCE,\xCE\xB1\xB1\x80->\xCE\xCE\xB1\xB1\x80");
}

TEST(EinsumGraph, ReadsAlgebras) {
  EXPECT_EQ(*ParseAlgebra("max_plus"), v1::ALGEBRA_MAX_PLUS);
  EXPECT_EQ(*ParseAlgebra("min-plus"), v1::ALGEBRA_MIN_PLUS);
  EXPECT_EQ(*ParseAlgebra("max_times"), v1::ALGEBRA_MAX_TIMES);
  EXPECT_EQ(*ParseAlgebra("or_and"), v1::ALGEBRA_OR_AND);
  EXPECT_THAT(ParseAlgebra("plus_times").status().message(), HasSubstr("--algebra=plus_times"));
}

TEST(EinsumGraphTest, OptimizersHaveNames) {
  EXPECT_EQ(*ParseOptimizer("auto"), einsum::v1::Einsum::OPTIMIZER_AUTO);
  EXPECT_EQ(*ParseOptimizer("greedy"), einsum::v1::Einsum::OPTIMIZER_GREEDY);
  EXPECT_EQ(*ParseOptimizer("optimal"), einsum::v1::Einsum::OPTIMIZER_OPTIMAL);
  EXPECT_EQ(*ParseOptimizer("left-to-right"), einsum::v1::Einsum::OPTIMIZER_LEFT_TO_RIGHT);
  EXPECT_THAT(ParseOptimizer("best").status().message(), HasSubstr("--optimizer=best"));
}

TEST(EinsumGraphTest, OperandsAreInputsOfTheirSizes) {
  einsum::v1::Einsum einsum;
  einsum.set_equation("ij,j->i");
  const client::HostTensor matrix = *client::HostTensor::FromVector(std::vector<std::complex<double>>(6), {2, 3});
  const v1::Graph graph = EinsumGraph(einsum, {matrix, client::HostTensor::Scalar(std::complex<double>(1))});
  ASSERT_EQ(graph.inputs_size(), 2);
  EXPECT_EQ(graph.inputs(0).type().dtype(), v1::DTYPE_C128);
  ASSERT_EQ(graph.inputs(0).type().shape_size(), 2);
  EXPECT_EQ(graph.inputs(0).type().shape(1).size(), 3);
  EXPECT_EQ(graph.inputs(1).type().shape_size(), 0);
  ASSERT_EQ(graph.nodes_size(), 1);
  EXPECT_THAT(graph.nodes(0).inputs(), ElementsAre("operand0", "operand1"));
  einsum::v1::Einsum sent;
  ASSERT_TRUE(graph.nodes(0).extension().op().UnpackTo(&sent));
  EXPECT_EQ(sent.equation(), "ij,j->i");
  EXPECT_EQ(graph.outputs(0).value(), graph.nodes(0).name());
}

TEST(EinsumGraphTest, OperandsOfOtherDTypesAreConverted) {
  const v1::Graph graph = EinsumGraph(
      einsum::v1::Einsum(),
      {client::HostTensor::Scalar(1.0F), client::HostTensor::Scalar(2.0), client::HostTensor::Scalar<int64_t>(3)});
  ASSERT_EQ(graph.nodes_size(), 3);
  EXPECT_EQ(graph.inputs(0).type().dtype(), v1::DTYPE_F32);
  EXPECT_EQ(graph.inputs(2).type().dtype(), v1::DTYPE_I64);
  EXPECT_THAT(graph.nodes(0).inputs(), ElementsAre("operand0"));
  EXPECT_EQ(graph.nodes(0).convert().dtype(), v1::DTYPE_F64);
  EXPECT_THAT(graph.nodes(1).inputs(), ElementsAre("operand2"));
  EXPECT_EQ(graph.nodes(1).convert().dtype(), v1::DTYPE_F64);
  EXPECT_THAT(graph.nodes(2).inputs(), ElementsAre("converted0", "operand1", "converted2"));
  EXPECT_EQ(graph.outputs(0).value(), "einsum");
}

}  // namespace
}  // namespace tensord::cli
