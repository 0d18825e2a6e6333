#include "backends/cpu/linalg/lanes/kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backends/cpu/machine/thread_pool.h"
#include "tests/testlib/numbers/linalg_properties.h"

namespace tensord::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> KernelOf(const LinalgCall& call) {
  BoundInstruction bound;
  bound.op = &Def(call.op);
  bound.attrs = &call.attrs;
  for (const Literal& operand : call.operands) bound.operands.push_back(operand.type());
  for (const ConcreteType& type : call.ResultTypes()) bound.results.push_back(type);
  return MakeSmallMatrixKernel(bound);
}

// Empty if the call is not for these kernels.
std::vector<Literal> RunSmall(const LinalgCall& call, int threads) {
  const absl::StatusOr<std::unique_ptr<Kernel>> kernel = KernelOf(call);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  std::vector<Literal> results;
  if (!kernel.ok() || *kernel == nullptr) return results;
  std::vector<void*> addresses;
  for (const ConcreteType& type : call.ResultTypes()) results.push_back(*Literal::Create(type));
  for (Literal& result : results) addresses.push_back(result.mutable_data());
  std::vector<const void*> operands;
  for (const Literal& operand : call.operands) operands.push_back(operand.bytes().data());
  const int64_t scratch_bytes = ((*kernel)->scratch_bytes() + 63) / 64 * 64;
  EXPECT_LE((*kernel)->workspace_bytes(), kMaxWorkspaceBytes);
  std::vector<char> storage(static_cast<size_t>(scratch_bytes + (*kernel)->workspace_bytes()) + 64, 0x5a);
  char* const scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  ThreadPool pool(threads);
  absl::Status failure;
  (*kernel)->Run({.operands = operands,
                  .results = addresses,
                  .scratch = scratch,
                  .pool = &pool,
                  .failure = &failure,
                  .workspace = scratch + scratch_bytes});
  EXPECT_TRUE(failure.ok()) << failure;
  return results;
}

bool HasLanes() {
  std::mt19937 random(1);
  return !RunSmall(LinalgCall(LinalgOp::kQr, {RandomMatrices(DType::kF64, {2, 2}, &random)}), 1).empty();
}

// The first `count` of the matrices of a call.
LinalgCall FirstOf(const LinalgCall& call, int64_t count) {
  LinalgCall first = call;
  for (Literal& operand : first.operands) {
    const Shape shape = {operand.type().shape[0], operand.type().shape[1], count};
    Literal some = *Literal::Create({operand.dtype(), shape});
    std::memcpy(some.mutable_data(), operand.bytes().data(), some.bytes().size());
    operand = some;
  }
  return first;
}

std::vector<LinalgCall> Calls(DType dtype, int64_t n, int64_t count, std::mt19937* random) {
  const Shape shape = {n, n, count}, tall = {n, std::max<int64_t>(1, n / 2), count};
  std::vector<LinalgCall> calls = {
      LinalgCall(LinalgOp::kCholesky, {RandomPositiveDefinite(dtype, shape, random)}),
      LinalgCall(LinalgOp::kLu, {RandomMatrices(dtype, tall, random)}),
      LinalgCall(LinalgOp::kQr, {RandomMatrices(dtype, tall, random)}),
      LinalgCall(LinalgOp::kSvd, {RandomMatrices(dtype, shape, random)}),
      LinalgCall(LinalgOp::kSvdValues, {RandomMatrices(dtype, tall, random)}),
      LinalgCall(LinalgOp::kEigh, {RandomPositiveDefinite(dtype, shape, random)}),
      LinalgCall(LinalgOp::kEighValues, {RandomPositiveDefinite(dtype, shape, random)}),
      LinalgCall(LinalgOp::kSolve, {RandomPositiveDefinite(dtype, shape, random), RandomMatrices(dtype, tall, random)}),
      LinalgCall(LinalgOp::kTriangularSolve,
                 {RandomTriangles(dtype, shape, random), RandomMatrices(dtype, shape, random)})};
  // RandomPositiveDefinite has NaN if the others do not look.
  calls[7].operands[0] = RandomMatrices(dtype, shape, random);
  return calls;
}

TEST(SmallMatrixKernelTest, BitsDependNeitherOnThreadsNorOnTheBatch) {
  if (!HasLanes()) GTEST_SKIP() << "no vectors here";
  std::mt19937 random(2);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const auto& [n, count] : {std::pair<int64_t, int64_t>{1, 700}, {3, 1500}, {8, 333}, {16, 70}}) {
      for (const LinalgCall& call : Calls(dtype, n, count, &random)) {
        const std::vector<Literal> results = RunSmall(call, 1);
        ASSERT_FALSE(results.empty()) << call.Name();
        EXPECT_TRUE(RunSmall(call, 3) == results) << call.Name();
        for (int64_t fewer : {int64_t{1}, int64_t{5}, count - 1}) {
          const std::vector<Literal> some = RunSmall(FirstOf(call, fewer), 2);
          ASSERT_EQ(some.size(), results.size());
          if (fewer == 5) ExpectProperties(FirstOf(call, fewer), some);
          for (size_t i = 0; i < some.size(); ++i) {
            EXPECT_EQ(some[i].bytes(), results[i].bytes().substr(0, some[i].bytes().size())) << call.Name();
          }
        }
      }
    }
  }
}

TEST(SmallMatrixKernelTest, OnlyWhatIsSmall) {
  if (!HasLanes()) GTEST_SKIP() << "no vectors here";
  std::mt19937 random(3);
  const auto has_kernel = [&](LinalgOp op, std::vector<Shape> shapes) {
    std::vector<Literal> operands;
    for (const Shape& shape : shapes) operands.push_back(RandomMatrices(DType::kF64, shape, &random));
    return *KernelOf(LinalgCall(op, operands)) != nullptr;
  };
  EXPECT_TRUE(has_kernel(LinalgOp::kCholesky, {{32, 32}}));
  EXPECT_FALSE(has_kernel(LinalgOp::kCholesky, {{33, 33, 9}}));
  EXPECT_TRUE(has_kernel(LinalgOp::kLu, {{16, 16}}));
  EXPECT_FALSE(has_kernel(LinalgOp::kLu, {{16, 17}}));
  EXPECT_TRUE(has_kernel(LinalgOp::kSvd, {{16, 3, 2}}));
  EXPECT_FALSE(has_kernel(LinalgOp::kSvd, {{17, 3, 2}}));
  EXPECT_TRUE(has_kernel(LinalgOp::kSolve, {{4, 4}, {4, 32}}));
  EXPECT_FALSE(has_kernel(LinalgOp::kSolve, {{4, 4}, {4, 33}}));
  EXPECT_FALSE(has_kernel(LinalgOp::kEig, {{4, 4}}));
  EXPECT_FALSE(has_kernel(LinalgOp::kLu, {{4, 0}}));
  EXPECT_FALSE(has_kernel(LinalgOp::kLu, {{4, 4, 0}}));
}

}  // namespace
}  // namespace tensord::cpu
