#include "backends/cuda/codegen/printer.h"

#include <string>
#include <vector>

#include "backends/cuda/codegen/values.h"
#include "gtest/gtest.h"
#include "tests/testlib/cuda/nvrtc.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/unit/backends/cuda/codegen/printed_cases.h"

namespace tensord {
namespace {

std::vector<std::string> CompileOptions(const std::string& architecture) {
  std::vector<std::string> options = {"--gpu-architecture=" + architecture};
  for (absl::string_view option : kCudaCompileOptions) options.emplace_back(option);
  return options;
}

void ExpectCompiles(const PrintedCase& c, const std::string& architecture) {
  const KernelText kernel = PrintCuda(c.program, c.options);
  const absl::StatusOr<std::string> ptx = Nvrtc::Get()->Compile(kernel.source, CompileOptions(architecture));
  ASSERT_TRUE(ptx.ok()) << c.name << ": " << ptx.status() << "\n" << ToString(c.program) << kernel.source;
  for (const CudaLaunch& launch : kernel.launches) {
    EXPECT_NE(ptx->find(".entry " + launch.entry + "("), std::string::npos) << c.name << " has no " << launch.entry;
    EXPECT_LE(launch.threads_per_block, c.options.max_threads_per_block) << c.name;
    EXPECT_LE(launch.blocks, c.options.max_blocks) << c.name;
    EXPECT_LE(launch.dynamic_shared_bytes, c.options.max_shared_bytes) << c.name;
  }
}

void ExpectAllCompile(const std::vector<PrintedCase>& cases) {
  for (const PrintedCase& c : cases) ExpectCompiles(c, "compute_90");
}

class CudaPrinterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Nvrtc::Get() == nullptr) GTEST_SKIP() << "there is no libnvrtc on this machine";
  }
};

TEST(CudaFunctionsTest, EveryOpHasOneForEveryDTypeThatItTakes) {
  for (const OpDef& def : CoreOps()) {
    if (def.op_class != OpClass::kUnary && def.op_class != OpClass::kBinary) continue;
    for (DType dtype : kAllDTypes) {
      if (!def.dtypes.Contains(dtype)) continue;
      EXPECT_TRUE(HasCudaFunction(static_cast<CoreOp>(def.index), dtype)) << def.name << " of " << Name(dtype);
    }
  }
}

TEST_F(CudaPrinterTest, EveryElementwiseInstructionOfEveryDTypeCompiles) { ExpectAllCompile(ElementwiseCases()); }

TEST_F(CudaPrinterTest, EveryAccessCompilesAloneAndAsVectors) { ExpectAllCompile(AccessCases()); }

TEST_F(CudaPrinterTest, EveryReductionCompilesInEveryMode) { ExpectAllCompile(ReduceCases()); }

// NVRTC's first phase leaves some errors to its assembler: shared memory, registers, the instructions of the device.
TEST_F(CudaPrinterTest, AssemblesForADevice) {
  const CudaOptions split = {.points_per_split = 1000};
  for (const CudaOptions& options : {CudaOptions(), split}) {
    ExpectCompiles({"softmax", SoftmaxProgram(1000, 100, DType::kF16), options}, "sm_90");
    ExpectCompiles({"layer_norm", LayerNormProgram(9000, 3, DType::kF32), options}, "sm_90");
    ExpectCompiles({"variance", VarianceProgram(100, 1000, DType::kF64), options}, "sm_80");
  }
}

TEST(CudaLaunchTest, NothingIsLaunchedWhereThereIsNothingToCompute) {
  MicroBuilder b({{.size = 4, .is_reduced = true}, {.size = 0}});
  b.Result(b.Reduce(ReduceKind::kSum, b.Load(DType::kF32, MicroLevel::kFull)));
  EXPECT_TRUE(PrintCuda(b.Build(), {}).launches.empty());
}

TEST(CudaLaunchTest, LongRowsAreSplitWhereThereAreFew) {
  const KernelText few = PrintCuda(SoftmaxProgram(1000000, 2, DType::kF32), {});
  ASSERT_EQ(few.launches.size(), 5u);  // two reductions, each joined, and what divides
  EXPECT_GE(few.launches[0].blocks, 32);
  EXPECT_GT(few.scratch_bytes, 0);
  const KernelText many = PrintCuda(SoftmaxProgram(1000, 2000, DType::kF32), {});
  ASSERT_EQ(many.launches.size(), 1u);
  EXPECT_EQ(many.scratch_bytes, 0);
}

}  // namespace
}  // namespace tensord
