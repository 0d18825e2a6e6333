#include "backends/cuda/kernel_table.h"

#include <string>
#include <vector>

#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"
#include "gmock/gmock.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

TEST(KernelTableTest, EveryOpOfTheCoreRunsOnEveryDtypeThatItTakes) {
  for (const OpDef& op : CoreOps()) {
    for (const DType dtype : kAllDTypes) {
      const bool has = op.dtypes.Contains(dtype) && !Is(op, CoreOp::kConstant);
      EXPECT_EQ(HasKernel(op, dtype), has) << op.name << " on " << Name(dtype);
    }
  }
  EXPECT_TRUE(HasKernel(AffineDotOp(), DType::kC64));
}

TEST(KernelTableTest, TablesOfFamiliesAreAudited) {
  OpDef op = Def(CoreOp::kExp);
  op.op_class = OpClass::kExtension;
  op.name = "example.Op";
  OpDef expanded = op;
  expanded.name = "example.Expanded";
  expanded.expand = +[](const ExpandCall&) -> absl::StatusOr<ExpandedResults> { return absl::InternalError(""); };
  const std::vector<OpDef> ops = {op, expanded};
  MakeKernel* const make = KernelsOf(Def(CoreOp::kExp)).make;
  const auto fault = [&](const std::vector<FamilyKernel>& kernels) {
    return std::string(AuditFamilyKernels(kernels, ops).message());
  };
  EXPECT_TRUE(AuditFamilyKernels({{{.op = "example.Op", .dtypes = kFloats, .make = make}}}, ops).ok());
  EXPECT_THAT(fault({{.op = "example.Other", .dtypes = kFloats, .make = make}}), HasSubstr("no op of its family"));
  EXPECT_THAT(fault({{.op = "example.Expanded", .dtypes = kFloats, .make = make}}), HasSubstr("never run"));
  EXPECT_THAT(fault({{.op = "example.Op", .dtypes = kFloats, .make = nullptr}}), HasSubstr("no function"));
  EXPECT_THAT(fault({{.op = "example.Op", .dtypes = kAnyDType, .make = make}}), HasSubstr("which it refuses"));
  EXPECT_THAT(fault({{.op = "example.Op", .dtypes = kFloats, .make = make},
                     {.op = "example.Op", .dtypes = kFloats, .make = make}}),
              HasSubstr("two CUDA kernels"));
}

}  // namespace
}  // namespace tensord::cuda
