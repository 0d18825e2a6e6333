#include "engine/fusion/cuda_printer.h"

#include <string>
#include <vector>

#include "engine/fusion/cuda_values.h"
#include "gtest/gtest.h"
#include "tests/testlib/micro_builder.h"
#include "tests/testlib/micro_programs.h"
#include "tests/testlib/nvrtc.h"

namespace tensord {
namespace {

std::vector<std::string> CompileOptions() {
  std::vector<std::string> options = {"--gpu-architecture=compute_90"};
  for (absl::string_view option : kCudaCompileOptions) options.emplace_back(option);
  return options;
}

void ExpectCompiles(const std::string& name, const MicroProgram& program, const CudaOptions& options) {
  const CudaKernel kernel = PrintCuda(program, options);
  const absl::StatusOr<std::string> ptx = Nvrtc::Get()->Compile(kernel.source, CompileOptions());
  ASSERT_TRUE(ptx.ok()) << name << ": " << ptx.status() << "\n" << ToString(program) << kernel.source;
  for (const CudaLaunch& launch : kernel.launches) {
    EXPECT_NE(ptx->find(".entry " + launch.entry + "("), std::string::npos) << name << " has no " << launch.entry;
  }
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

TEST_F(CudaPrinterTest, EveryElementwiseInstructionOfEveryDTypeCompiles) {
  for (const NamedMicroProgram& p : ElementwisePrograms({{.size = 1000}})) ExpectCompiles(p.name, p.program, {});
}

TEST_F(CudaPrinterTest, EveryAccessCompilesAloneAndAsVectors) {
  for (const NamedMicroProgram& p : AccessPrograms()) {
    ExpectCompiles(p.name, p.program, {});
    ExpectCompiles(p.name, p.program, {.num_processors = 0});
  }
}

}  // namespace
}  // namespace tensord
