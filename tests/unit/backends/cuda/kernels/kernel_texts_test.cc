// Own kernels under NVIDIA's compiler, where the machine has it.
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/kernels/gather_text.h"
#include "backends/cuda/kernels/indexing_kernels.h"
#include "backends/cuda/kernels/layout_kernels.h"
#include "backends/cuda/kernels/own_product_text.h"
#include "backends/cuda/kernels/scatter_text.h"
#include "backends/cuda/kernels/small_product_text.h"
#include "engine/ir/verifier.h"
#include "gmock/gmock.h"
#include "tests/testlib/cuda/generations.h"
#include "tests/testlib/cuda/nvrtc.h"
#include "tests/testlib/graphs/node_case.h"
#include "tests/testlib/reason_of.h"

namespace tensord::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the text of the kernel of a case on its own; empty if there is nothing to compute.
absl::StatusOr<std::string> TextOf(const NodeCase& node_case) {
  tensord::Graph graph = GraphOf(node_case);
  if (const auto guards = InferTypes(&graph); !guards.ok()) return guards.status();
  const OpDef& op = *node_case.op;
  BoundInstruction instruction{.op = &op, .attrs = &node_case.attrs};
  instruction.operands.assign(node_case.operands.begin(), node_case.operands.end());
  for (const Node& node : graph.nodes()) {
    if (node.op != &op) continue;
    const TensorType& result = graph.type(node.first_result);
    ConcreteType type{.dtype = result.dtype};
    for (const Dim& dim : result.shape) {
      if (!dim.size.is_constant()) return "";
      type.shape.push_back(dim.size.constant());
    }
    instruction.results.push_back(std::move(type));
  }
  if (instruction.results[0].num_elements() == 0) return "";
  const CudaOptions options{.pointer_alignment_bytes = 1};
  absl::StatusOr<KernelText> text;
  if (Is(op, CoreOp::kGather)) {
    text = GatherText(instruction, options);
  } else if (Is(op, CoreOp::kScatter)) {
    const auto scatter = ScatterText(instruction, options);
    if (!scatter.ok()) return scatter.status();
    text = scatter->text;
  } else if (Is(op, CoreOp::kDynamicSlice)) {
    text = DynamicSliceText(instruction, options);
  } else if (Is(op, CoreOp::kDynamicUpdateSlice)) {
    text = DynamicUpdateSliceText(instruction, options);
  } else if (Is(op, CoreOp::kTril) || Is(op, CoreOp::kTriu)) {
    text = TriangleText(instruction, options);
  } else if (Is(op, CoreOp::kDotGeneral)) {
    const ProductSpace space = ProductSpaceOf(instruction);
    text = (IsSmallProduct(space) ? SmallProductText : OwnProductText)(
        space, AlgebraOf(node_case.attrs), instruction.operands[0].dtype, instruction.results[0].dtype, options);
  } else {
    text = LayoutText(instruction, options);
  }
  if (!text.ok()) return text.status();
  return text->source;
}

NodeCase Joining(std::vector<ConcreteType> operands) {
  const OpDef& op = Def(CoreOp::kConcatenate);
  return {.name = "joining",
          .op = &op,
          .attrs = Attributes(op.attrs).Set("dimension", int64_t{0}),
          .operands = std::move(operands)};
}

bool HasOwnText(const NodeCase& node_case) {
  const OpDef& op = *node_case.op;
  if (op.op_class != OpClass::kPlain || op.has(kElementwise) || node_case.operands.empty()) return false;
  const auto is = [&op](CoreOp other) { return Is(op, other); };
  return !is(CoreOp::kReduce) && !is(CoreOp::kShapeOf) && !is(CoreOp::kGatherDynamicSliceSizes);
}

// Takes the longest text of each op on each dtype.
TEST(KernelTextsTest, NvidiasCompilerHasNothingToSay) {
  if (tensord::Nvrtc::Get() == nullptr) GTEST_SKIP() << "no NVRTC";
  std::map<std::pair<uint16_t, DType>, std::string> longest;
  for (const NodeCase& node_case : CoreOpCases()) {
    if (!HasOwnText(node_case)) continue;
    const auto text = TextOf(node_case);
    ASSERT_TRUE(text.ok()) << node_case.name << ": " << text.status();
    std::string& kept = longest[{node_case.op->index, node_case.operands[0].dtype}];
    if (text->size() > kept.size()) kept = *text;
  }
  std::set<std::string> texts;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kC128}) {
    NodeCase small{.name = "small products",
                   .op = &Def(CoreOp::kDotGeneral),
                   .attrs = Attributes(Def(CoreOp::kDotGeneral).attrs),
                   .operands = {{dtype, {5, 32, 100}}, {dtype, {32, 7, 100}}}};
    small.attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{1});
    small.attrs.Set("rhs_contracting_dimensions", std::vector<int64_t>{0});
    small.attrs.Set("lhs_batching_dimensions", std::vector<int64_t>{2});
    small.attrs.Set("rhs_batching_dimensions", std::vector<int64_t>{2});
    texts.insert(*TextOf(small));
  }
  for (const DType dtype : {DType::kBool, DType::kF16, DType::kI32, DType::kC64, DType::kC128}) {
    texts.insert(*TextOf(Joining(std::vector<ConcreteType>(9, {dtype, {2, 3}}))));
  }
  for (const auto& [key, text] : longest) texts.insert(text);
  EXPECT_GT(texts.size(), 60u);
  texts.erase("");
  ExpectFitsGenerations(texts, 128);
}

// Compiling takes as long for ten thousand operands as for ten.
TEST(KernelTextsTest, OneTextJoinsAnyNumberOfOperands) {
  std::vector<ConcreteType> operands;
  for (int64_t k = 0; k < 10'000; ++k) operands.push_back({DType::kF32, {k % 7, 3}});
  EXPECT_EQ(*TextOf(Joining(operands)), *TextOf(Joining(std::vector<ConcreteType>(9, {DType::kF32, {1000}}))));
}

// Nobody has the memory to run these: places are seen to be computed in 64 bits, and not where 32 do.
TEST(KernelTextsTest, HugeTensorsAreCountedIn64Bits) {
  const int64_t side = int64_t{1} << 17;
  NodeCase transpose{.name = "huge",
                     .op = &Def(CoreOp::kTranspose),
                     .attrs = Attributes(Def(CoreOp::kTranspose).attrs),
                     .operands = {{DType::kBool, {side, side}}}};
  transpose.attrs.Set("permutation", std::vector<int64_t>{1, 0});
  EXPECT_THAT(*TextOf(transpose), HasSubstr("(i64)ri * 131072"));
  transpose.operands[0].shape = {1 << 10, 1 << 10};
  EXPECT_THAT(*TextOf(transpose), AllOf(HasSubstr("ri * 1024"), Not(HasSubstr("(i64)ri"))));

  NodeCase rows{.name = "huge",
                .op = &Def(CoreOp::kSlice),
                .attrs = Attributes(Def(CoreOp::kSlice).attrs),
                .operands = {{DType::kI32, {side, side}}}};
  rows.attrs.Set("start_indices", std::vector<int64_t>{0, 8});
  rows.attrs.Set("limit_indices", std::vector<int64_t>{side - 1, side});
  rows.attrs.Set("strides", std::vector<int64_t>{1, 1});
  EXPECT_THAT(*TextOf(rows),
              AllOf(HasSubstr("p0 + 1048576ll"), HasSubstr("for (u64 g = "), HasSubstr("(i64)i1 * 131072")));

  NodeCase gather{.name = "huge",
                  .op = &Def(CoreOp::kGather),
                  .attrs = Attributes(Def(CoreOp::kGather).attrs),
                  .operands = {{DType::kF32, {64, int64_t{1} << 30}}, {DType::kI32, {100}}}};
  gather.attrs.Set("slice_sizes", std::vector<int64_t>{64, 1});
  gather.attrs.Set("offset_dims", std::vector<int64_t>{0});
  gather.attrs.Set("collapsed_slice_dims", std::vector<int64_t>{1});
  gather.attrs.Set("start_index_map", std::vector<int64_t>{1});
  gather.attrs.Set("index_vector_dim", int64_t{1});
  EXPECT_THAT(*TextOf(gather), HasSubstr("1073741823ll : (i64)s0) * 64ll"));
}

TEST(KernelTextsTest, AnUpdateThatNoWordNamesIsRefused) {
  NodeCase scatter{
      .name = "huge",
      .op = &Def(CoreOp::kScatter),
      .attrs = Attributes(Def(CoreOp::kScatter).attrs),
      .operands = {
          {DType::kF32, {int64_t{1} << 36}}, {DType::kI64, {int64_t{1} << 29}}, {DType::kF32, {int64_t{1} << 29}}}};
  scatter.attrs.Set("inserted_window_dims", std::vector<int64_t>{0});
  scatter.attrs.Set("scatter_dims_to_operand_dims", std::vector<int64_t>{0});
  scatter.attrs.Set("index_vector_dim", int64_t{1});
  scatter.attrs.Set("combiner", static_cast<int64_t>(ScatterCombiner::kAdd));
  EXPECT_EQ(ReasonOf(TextOf(scatter).status()), "UNSUPPORTED_ON_DEVICE");
  scatter.operands[1].shape = scatter.operands[2].shape = {1 << 20};
  EXPECT_TRUE(TextOf(scatter).ok());
}

}  // namespace
}  // namespace tensord::cuda
