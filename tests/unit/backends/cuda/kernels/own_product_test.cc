#include "backends/cuda/kernels/own_product_kernels.h"

#include "absl/strings/str_cat.h"
#include "backends/cuda/compile/kernel_compiler.h"
#include "backends/cuda/device/lane.h"
#include "backends/cuda/kernels/own_product_text.h"
#include "backends/cuda/kernels/product_space.h"
#include "backends/cuda/kernels/small_product_text.h"
#include "backends/cuda/memory/device_pool.h"
#include "engine/ops/affine_dot.h"
#include "tests/unit/backends/cuda/kernels/node_cases_test.h"

namespace tensord::cuda {
namespace {

using OwnProductTest = NodeCasesTest;

NodeCase DotOf(DType dtype, Algebra algebra, int64_t m, int64_t n, int64_t k, int64_t batch) {
  const OpDef& dot = Def(CoreOp::kDotGeneral);
  Attributes attrs(dot.attrs);
  attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{1});
  attrs.Set("rhs_contracting_dimensions", std::vector<int64_t>{0});
  attrs.Set("lhs_batching_dimensions", std::vector<int64_t>{2});
  attrs.Set("rhs_batching_dimensions", std::vector<int64_t>{2});
  if (algebra != Algebra::kStandard) attrs.Set("algebra", static_cast<int64_t>(algebra));
  return {.name = absl::StrCat(Name(dtype), " in algebra ", static_cast<int>(algebra), " of ", m, " ", n, " ", k),
          .op = &dot,
          .attrs = attrs,
          .operands = {{dtype, {m, k, batch}}, {dtype, {k, n, batch}}}};
}

TEST_F(OwnProductTest, IntegersAndBoolAreExact) {
  ExpectAsReference(CasesOf({CoreOp::kDotGeneral}, kIntegers | kBoolOnly, 12), Values::kEdges);
  ExpectAsReference(
      {DotOf(DType::kI32, Algebra::kStandard, 70, 130, 33, 2), DotOf(DType::kI64, Algebra::kStandard, 3, 65, 100, 1),
       DotOf(DType::kBool, Algebra::kStandard, 65, 1, 17, 3)},
      Values::kEdges);
}

TEST_F(OwnProductTest, AlgebrasAreExactAtTheEdges) {
  std::vector<NodeCase> cases;
  for (const Algebra algebra : {Algebra::kMaxPlus, Algebra::kMinPlus, Algebra::kMaxTimes}) {
    for (const DType dtype : {DType::kI32, DType::kI64, DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
      cases.push_back(DotOf(dtype, algebra, 20, 9, 21, 2));
    }
  }
  cases.push_back(DotOf(DType::kBool, Algebra::kOrAnd, 20, 9, 21, 2));
  ExpectAsReference(cases, Values::kEdges);
  ExpectAsReference(cases, Values::kModest);
}

TEST_F(OwnProductTest, WholeFloatsAreExact) {
  std::vector<NodeCase> cases;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128, DType::kF16, DType::kBF16}) {
    cases.push_back(DotOf(dtype, Algebra::kStandard, 17, 66, 5, 2));
  }
  cases.push_back(DotOf(DType::kF32, Algebra::kStandard, 2, 3, 1000, 1));
  cases.push_back(DotOf(DType::kF32, Algebra::kStandard, 4, 3, 0, 1));
  ExpectAsReference(cases, Values::kIntegers);
}

// Windows of a padded line: r[i, o] = sum over t of x[2 i + t - 1] w[t, o].
NodeCase WindowsOf(DType dtype) {
  const OpDef& op = AffineDotOp();
  Attributes attrs(op.attrs);
  attrs.Set("sizes", std::vector<int64_t>{10, 3, 4});
  attrs.Set("num_summed", int64_t{1});
  attrs.Set("lhs_starts", std::vector<int64_t>{-1});
  attrs.Set("lhs_steps", std::vector<int64_t>{2, 0, 1});
  attrs.Set("rhs_starts", std::vector<int64_t>{0, 0});
  attrs.Set("rhs_steps", std::vector<int64_t>{0, 0, 0, 1, 1, 0});
  attrs.Set("shape", std::vector<int64_t>{10, 3});
  attrs.Set("lhs_conj", int64_t{1});
  attrs.Set("rhs_conj", int64_t{0});
  return {.name = absl::StrCat("windows of ", Name(dtype)),
          .op = &op,
          .attrs = attrs,
          .operands = {{dtype, {19}}, {dtype, {4, 3}}}};
}

TEST_F(OwnProductTest, WindowsThatAreNeverMade) {
  std::vector<NodeCase> cases;
  for (const DType dtype : kAllDTypes) cases.push_back(WindowsOf(dtype));
  ExpectAsReference(cases, Values::kIntegers);
}

TEST_F(OwnProductTest, ManySmallProducts) {
  const std::vector<NodeCase> cases = {
      DotOf(DType::kF32, Algebra::kStandard, 8, 8, 8, 300), DotOf(DType::kC128, Algebra::kStandard, 3, 1, 5, 64),
      DotOf(DType::kBF16, Algebra::kStandard, 1, 32, 4, 70), DotOf(DType::kI64, Algebra::kMinPlus, 5, 4, 32, 65),
      DotOf(DType::kBool, Algebra::kStandard, 2, 3, 1, 100)};
  ExpectAsReference(cases, Values::kIntegers);
  EXPECT_TRUE(
      IsSmallProduct({.axes = {{{{{8, {1, 8, 1}}}, {{8, {0, 8, 8}}}, {{8, {8, 1, 0}}}, {{64, {64, 64, 64}}}}}}}));
  EXPECT_FALSE(IsSmallProduct({.axes = {{{{{8, {1, 8, 1}}}, {{8, {0, 8, 8}}}, {{8, {8, 1, 0}}}, {}}}}}));
}

TEST_F(OwnProductTest, NoAccessIsOutOfBoundsAndNoneRaces) {
  hostCudaSet("CHECK", "1");
  const long before = hostCudaProblems();
  ExpectAsReference(
      {DotOf(DType::kI32, Algebra::kStandard, 70, 20, 33, 2), DotOf(DType::kF32, Algebra::kMaxPlus, 5, 3, 17, 1),
       DotOf(DType::kF32, Algebra::kStandard, 5, 3, 17, 64), WindowsOf(DType::kF32)},
      Values::kIntegers);
  EXPECT_EQ(hostCudaProblems(), before);
  hostCudaSet("CHECK", "");
}

// The text of one product under any options, on values that stay the same.
class ProductTextTest : public NodeCasesTest {
 protected:
  void TearDown() override {
    buffers_.clear();
    pool_ = nullptr;
    lane_ = nullptr;
    compiler_ = nullptr;
    context_ = nullptr;
    NodeCasesTest::TearDown();
  }

  // Chooses the product, which has operands of one dtype, and values for them.
  void Choose(NodeCase product, const ConcreteType& result, Values values) {
    product_ = std::move(product);
    algebra_ = AlgebraOf(product_.attrs);
    instruction_ = {.op = product_.op, .attrs = &product_.attrs, .results = {result}};
    addresses_.clear();
    buffers_.clear();
    arguments_.clear();
    std::mt19937_64 random(3);
    for (const ConcreteType& type : product_.operands) {
      instruction_.operands.push_back(type);
      Add(type.num_bytes());
      arguments_.push_back(RandomLiteral(type, values, &random));
      ASSERT_TRUE(lane_->Upload(addresses_.back(), arguments_.back().bytes().data(), type.num_bytes()).ok());
    }
    Add(result.num_bytes());
  }
  KernelText Text(CudaOptions options) const {
    options.pointer_alignment_bytes = 1;
    return OwnProductText(ProductSpaceOf(instruction_), algebra_, instruction_.operands[0].dtype,
                          instruction_.results[0].dtype, options);
  }
  // Runs a text of the product, with junk wherever it may write.
  std::string Bits(const KernelText& text) {
    const auto kernel = compiler_->Compile(text);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    const int64_t bytes = instruction_.results[0].num_bytes();
    std::vector<CuAddress> addresses = addresses_;
    EXPECT_TRUE(lane_->Fill(addresses.back(), 0xff, bytes).ok());
    std::shared_ptr<Buffer> scratch;
    if (text.scratch_bytes > 0) {
      scratch = *pool_->Allocate(text.scratch_bytes);
      addresses.push_back(reinterpret_cast<CuAddress>(scratch->address()));
      EXPECT_TRUE(lane_->Fill(addresses.back(), 0xff, text.scratch_bytes).ok());
    }
    std::string bits(static_cast<size_t>(bytes), 'x');
    EXPECT_TRUE(lane_->Enqueue([&](CuStream stream) { return (*kernel)->Enqueue(stream, addresses); }).ok());
    EXPECT_TRUE(lane_->Download(bits.data(), addresses_.back(), bytes).ok());
    EXPECT_TRUE(lane_->Finish().ok());
    return bits;
  }
  std::string Reference() const {
    tensord::Graph graph = GraphOf(product_);
    const auto guards = InferTypes(&graph);
    const auto want = EvaluateReference(graph, *guards, arguments_);
    EXPECT_TRUE(want.ok()) << want.status();
    return std::string((*want)[0].bytes());
  }

  NodeCase product_;
  Algebra algebra_ = Algebra::kStandard;
  BoundInstruction instruction_;

 private:
  void Add(int64_t bytes) {
    buffers_.push_back(*pool_->Allocate(bytes));
    addresses_.push_back(reinterpret_cast<CuAddress>(buffers_.back()->address()));
  }

  std::shared_ptr<Context> context_ = Entered();
  std::unique_ptr<KernelCompiler> compiler_ =
      *KernelCompiler::Create(context_, *libraries_->nvrtc(), CubinStore::InMemory());
  std::unique_ptr<Lane> lane_ = *Lane::Create(context_, libraries_.get());
  std::shared_ptr<DevicePool> pool_ = *DevicePool::Create(context_, {.limit_bytes = 16 * kMiB});
  std::vector<Literal> arguments_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<CuAddress> addresses_;
};

// Nothing stops a launch.
TEST_F(ProductTextTest, ALaunchThatIsCutGivesTheSameBits) {
  Choose(DotOf(DType::kF32, Algebra::kStandard, 200, 130, 40, 2), {DType::kF32, {200, 130, 2}}, Values::kModest);
  const KernelText whole = Text({.num_processors = 1});
  const KernelText cut = Text({.num_processors = 1, .steps_per_launch = 1});
  EXPECT_EQ(whole.launches[0].parts, 1);
  EXPECT_GT(cut.launches[0].parts, 1);
  EXPECT_TRUE(Bits(whole) == Bits(cut));
}

// A sum of many terms is for many processors, and for launches that end soon.
TEST_F(ProductTextTest, BlocksShareALongSum) {
  const struct {
    DType dtype;
    Algebra algebra;
  } kinds[] = {{DType::kI32, Algebra::kStandard}, {DType::kF32, Algebra::kMaxPlus}, {DType::kF64, Algebra::kMinPlus},
               {DType::kI64, Algebra::kMinPlus},  {DType::kBool, Algebra::kOrAnd},  {DType::kF16, Algebra::kMaxTimes},
               {DType::kC64, Algebra::kStandard}};
  for (const auto& [dtype, algebra] : kinds) {
    // Whole numbers, so that no order of a sum shows.
    for (const int64_t terms : {1023, 1024, 1100}) {
      NodeCase product = DotOf(dtype, algebra, 3, 17, terms, 2);
      SCOPED_TRACE(product.name);
      Choose(std::move(product), {dtype, {3, 17, 2}}, Values::kIntegers);
      const std::string want = Reference();
      EXPECT_TRUE(Bits(Text({})) == want) << "not shared";
      CudaOptions options = {.num_processors = 4, .terms_per_share = 100};
      const KernelText shared = Text(options);
      ASSERT_EQ(shared.launches.size(), 2u);
      EXPECT_EQ(shared.launches[0].blocks, terms > 1024 ? 6 : 8) << "of 512 terms, or 256";
      EXPECT_EQ(shared.launches[0].parts, 1);
      EXPECT_TRUE(Bits(shared) == want);
      // Two slots of a tile, to which later launches add.
      options.most_shared_sums = 2 * 2 * 512;
      options.steps_per_launch = 1;
      const KernelText in_turn = Text(options);
      EXPECT_EQ(in_turn.launches[0].parts, terms > 1024 ? 3 : 2);
      EXPECT_LT(in_turn.scratch_bytes, shared.scratch_bytes);
      EXPECT_TRUE(Bits(in_turn) == want);
    }
  }
}

TEST_F(ProductTextTest, SharesOfASumNeitherRaceNorLeaveTheirMemory) {
  hostCudaSet("CHECK", "1");
  const long before = hostCudaProblems();
  for (const int64_t most : {1024, 1 << 20}) {
    Choose(DotOf(DType::kI32, Algebra::kStandard, 5, 3, 1100, 2), {DType::kI32, {5, 3, 2}}, Values::kIntegers);
    EXPECT_TRUE(Bits(Text({.num_processors = 4, .terms_per_share = 100, .most_shared_sums = most})) == Reference());
  }
  EXPECT_EQ(hostCudaProblems(), before);
  hostCudaSet("CHECK", "");
}

// One element, of more terms than a block should add up.
TEST_F(OwnProductTest, AnInnerProductOfIntegers) {
  ExpectAsReference({DotOf(DType::kI32, Algebra::kStandard, 1, 1, 100'001, 1),
                     DotOf(DType::kF32, Algebra::kMaxPlus, 1, 2, 70'000, 1)},
                    Values::kIntegers);
}

}  // namespace
}  // namespace tensord::cuda
