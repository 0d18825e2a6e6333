#include "backends/cuda/kernels/indexing_kernels.h"

#include "engine/runtime/compile/compiler.h"
#include "tests/testlib/graphs/window_cases.h"
#include "tests/unit/backends/cuda/kernels/node_cases_test.h"

namespace tensord::cuda {
namespace {

using IndexingKernelsTest = NodeCasesTest;

TEST_F(IndexingKernelsTest, SlicesBeginWhereTheDeviceReads) {
  ExpectAsReference(CasesOf({CoreOp::kDynamicSlice, CoreOp::kDynamicUpdateSlice}, kSizes, 8), Values::kIntegers);
  ExpectAsReference(CasesOf({CoreOp::kDynamicSlice, CoreOp::kDynamicUpdateSlice}, kAnyDType, 1), Values::kEdges);
}

TEST_F(IndexingKernelsTest, WindowsAreGathered) {
  ExpectAsReference(CasesOf({CoreOp::kGather, CoreOp::kGatherDynamicSliceSizes}, kSizes, 6), Values::kIntegers);
  ExpectAsReference(CasesOf({CoreOp::kGather}, kAnyDType, 2), Values::kEdges);
}

// Whole numbers meet often, so orders matter; equal to the bit on every dtype.
TEST_F(IndexingKernelsTest, ScattersCombineInIndexOrder) {
  ExpectAsReference(CasesOf({CoreOp::kScatter}, kAnyDType, 3), Values::kIntegers);
}

NodeCase ScatterOf(ScatterCombiner combiner, DType dtype, int64_t rows, int64_t row, int64_t updates,
                   bool overlaps = false) {
  const OpDef& scatter = Def(CoreOp::kScatter);
  Attributes attrs(scatter.attrs);
  attrs.Set("combiner", static_cast<int64_t>(combiner));
  attrs.Set("scatter_dims_to_operand_dims", std::vector<int64_t>{1});
  attrs.Set("index_vector_dim", int64_t{1});
  if (overlaps) {
    attrs.Set("update_window_dims", std::vector<int64_t>{0, 1});
    return {.name = "overlapping scatter",
            .op = &scatter,
            .attrs = attrs,
            .operands = {{dtype, {row, rows}}, {DType::kI32, {updates}}, {dtype, {row, 3, updates}}}};
  }
  attrs.Set("update_window_dims", std::vector<int64_t>{0});
  attrs.Set("inserted_window_dims", std::vector<int64_t>{1});
  return {.name = "scatter of rows",
          .op = &scatter,
          .attrs = attrs,
          .operands = {{dtype, {row, rows}}, {DType::kI32, {updates}}, {dtype, {row, updates}}}};
}

TEST_F(IndexingKernelsTest, FloatsAreAddedAsTheReferenceAddsThemWhateverTheOrderOfBlocks) {
  const std::vector<NodeCase> cases = {ScatterOf(ScatterCombiner::kAdd, DType::kF32, 4, 5, 3000),
                                       ScatterOf(ScatterCombiner::kMultiply, DType::kBF16, 3, 1, 1500),
                                       ScatterOf(ScatterCombiner::kAdd, DType::kC64, 4, 2, 1100, /*overlaps=*/true),
                                       ScatterOf(ScatterCombiner::kSet, DType::kF64, 4, 3, 700, /*overlaps=*/true),
                                       ScatterOf(ScatterCombiner::kAdd, DType::kI64, 4, 3, 700),
                                       ScatterOf(ScatterCombiner::kMaximum, DType::kF16, 4, 3, 700)};
  for (const char* order : {"forward", "reverse"}) {
    hostCudaSet("ORDER", order);
    ExpectAsReference(cases, Values::kModest);
  }
  hostCudaSet("ORDER", "");
}

// More updates than a launch takes, to few destinations: one launch goes on where the one before has stopped.
TEST_F(IndexingKernelsTest, LongScattersAreCut) {
  const std::vector<NodeCase> cases = {ScatterOf(ScatterCombiner::kAdd, DType::kF32, 1, 1, 200000),
                                       ScatterOf(ScatterCombiner::kAdd, DType::kF32, 3, 2, 140000),
                                       ScatterOf(ScatterCombiner::kAdd, DType::kBF16, 4, 1, 40000, /*overlaps=*/true),
                                       ScatterOf(ScatterCombiner::kMultiply, DType::kI32, 2, 1, 70000)};
  for (const NodeCase& node_case : cases) {
    const long launches = hostCudaCalls("cuLaunchKernel");
    ExpectAsReference({node_case}, Values::kModest);
    const int64_t items = node_case.operands[2].num_elements() / node_case.operands[0].shape[0];
    int64_t merges = 0;
    for (int64_t run = 1024; run < items; run *= 2) ++merges;
    const int64_t parts = (items + 65535) / 65536;
    EXPECT_GT(parts, 1);
    EXPECT_EQ(hostCudaCalls("cuLaunchKernel") - launches, 2 + merges + parts) << node_case.name;
  }
}

TEST_F(IndexingKernelsTest, NoAccessIsOutOfBoundsAndNoneRaces) {
  hostCudaSet("CHECK", "1");
  const long before = hostCudaProblems();
  ExpectAsReference(CasesOf({CoreOp::kScatter, CoreOp::kGather, CoreOp::kDynamicUpdateSlice},
                            DTypeSet{DType::kBool, DType::kI32, DType::kF32}, 2),
                    Values::kIntegers);
  ExpectAsReference({ScatterOf(ScatterCombiner::kAdd, DType::kF32, 4, 5, 1200),
                     ScatterOf(ScatterCombiner::kSet, DType::kF32, 4, 5, 300),
                     ScatterOf(ScatterCombiner::kMultiply, DType::kI32, 4, 5, 300)},
                    Values::kModest);
  EXPECT_EQ(hostCudaProblems(), before);
  hostCudaSet("CHECK", "");
}

// The result takes the operand's memory, so that nothing but the window is written.
TEST_F(IndexingKernelsTest, DonatedOperandsAreUpdatedInPlace) {
  const std::unique_ptr<Backend> backend = Made();
  NodeCase update{.name = "update",
                  .op = &Def(CoreOp::kDynamicUpdateSlice),
                  .attrs = Attributes(Def(CoreOp::kDynamicUpdateSlice).attrs),
                  .operands = {{DType::kF32, {100, 7}}, {DType::kF32, {4, 2}}, {DType::kI64, {2}}}};
  std::mt19937_64 random(3);
  std::vector<Literal> arguments;
  for (const ConcreteType& type : update.operands) arguments.push_back(RandomLiteral(type, Values::kIntegers, &random));
  const auto program = Compile(GraphOf(update), {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  const bool donated[] = {true, false, false};
  const long before = hostCudaCalls("cuLaunchKernel");
  const auto plain = RunCompiled(**program, arguments);
  const long launches = hostCudaCalls("cuLaunchKernel") - before;
  const auto in_place = RunCompiled(**program, arguments, 0, donated);
  const long launches_in_place = hostCudaCalls("cuLaunchKernel") - before - launches;
  ASSERT_TRUE(plain.ok() && in_place.ok());
  EXPECT_EQ(Difference((*in_place)[0], (*plain)[0], {}), "");
  EXPECT_EQ(launches, 2);
  EXPECT_EQ(launches_in_place, 1);
}

}  // namespace
}  // namespace tensord::cuda
