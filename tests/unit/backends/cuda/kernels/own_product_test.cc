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

// Nothing stops a launch.
TEST_F(OwnProductTest, ALaunchThatIsCutGivesTheSameBits) {
  const std::shared_ptr<Context> context = Entered();
  const auto compiler = *KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  const auto lane = *Lane::Create(context, libraries_.get());
  const auto pool = *DevicePool::Create(context, {.limit_bytes = 8 * kMiB});
  const NodeCase product = DotOf(DType::kF32, Algebra::kStandard, 200, 130, 40, 2);
  const ConcreteType result = {DType::kF32, {200, 130, 2}};
  BoundInstruction instruction{.op = product.op, .attrs = &product.attrs, .results = {result}};
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<CuAddress> addresses;
  const auto add = [&](const ConcreteType& type) {
    buffers.push_back(*pool->Allocate(type.num_bytes()));
    addresses.push_back(reinterpret_cast<CuAddress>(buffers.back()->address()));
  };
  std::mt19937_64 random(3);
  for (const ConcreteType& type : product.operands) {
    instruction.operands.push_back(type);
    add(type);
    const Literal values = RandomLiteral(type, Values::kModest, &random);
    ASSERT_TRUE(lane->Upload(addresses.back(), values.bytes().data(), type.num_bytes()).ok());
  }
  add(result);
  const auto bits = [&](int64_t steps) {
    const CudaOptions options = {.num_processors = 1, .pointer_alignment_bytes = 1, .steps_per_launch = steps};
    const KernelText text =
        OwnProductText(ProductSpaceOf(instruction), Algebra::kStandard, DType::kF32, DType::kF32, options);
    EXPECT_EQ(text.launches[0].parts > 1, steps == 1);
    const auto kernel = compiler->Compile(text);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    std::string bytes(static_cast<size_t>(result.num_bytes()), 'x');
    EXPECT_TRUE(lane->Fill(addresses.back(), 0xff, result.num_bytes()).ok());
    EXPECT_TRUE(lane->Enqueue([&](CuStream stream) { return (*kernel)->Enqueue(stream, addresses); }).ok());
    EXPECT_TRUE(lane->Download(bytes.data(), addresses.back(), result.num_bytes()).ok());
    EXPECT_TRUE(lane->Finish().ok());
    return bytes;
  };
  EXPECT_TRUE(bits(CudaOptions().steps_per_launch) == bits(1));
}

}  // namespace
}  // namespace tensord::cuda
