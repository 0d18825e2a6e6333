#include "backends/cuda/codegen/printer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "backends/cuda/codegen/index.h"
#include "backends/cuda/codegen/values.h"
#include "gtest/gtest.h"
#include "tests/testlib/cuda/nvrtc.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/unit/backends/cuda/codegen/printed_cases.h"

namespace tensord {
namespace {

std::vector<std::string> CompileOptions(const std::string& architecture) {
  std::vector<std::string> options = {"--gpu-architecture=" + architecture};
  if (absl::StartsWith(architecture, "sm_")) options.emplace_back("--ptxas-options=--warn-on-spills");
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
  for (const PrintedCase& c : CutCases()) ExpectCompiles(c, "sm_90");
}

// The kernels of benchmarks, on each generation: nothing is spilled, and as many threads fit into a processor as it
// takes to keep the memory busy (65,536 registers; half of 2,048 threads have 64 each).
TEST_F(CudaPrinterTest, KernelsOfRowsAndColumnsFitIntoRegisters) {
  const CudaOptions options = {.max_shared_bytes = 227 * 1024};
  struct Bound {
    const char* name;
    MicroProgram program;
    int registers;
  };
  const Bound bounds[] = {{"softmax of a warp", SoftmaxProgram(1024, 32768, DType::kF32), 64},
                          {"softmax of a block", SoftmaxProgram(32768, 8192, DType::kF32), 64},
                          {"layer norm", LayerNormProgram(4096, 131072, DType::kBF16), 96},
                          {"columns", ColumnsProgram(8192, 65536, DType::kF32), 64},
                          {"half columns", ColumnsProgram(8192, 65536, DType::kF16), 80}};
  for (const Bound& bound : bounds) {
    const KernelText kernel = PrintCuda(bound.program, options);
    for (const char* architecture : {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"}) {
      const absl::StatusOr<int> registers = Nvrtc::Get()->Registers(kernel.source, CompileOptions(architecture));
      ASSERT_TRUE(registers.ok()) << bound.name << " " << architecture << ": " << registers.status() << kernel.source;
      EXPECT_GT(*registers, 0);
      EXPECT_LE(*registers, bound.registers) << bound.name << " " << architecture;
    }
  }
}

TEST_F(CudaPrinterTest, EveryKernelOfNeighboursCompilesForEveryGeneration) {
  int i = 0;
  for (const PrintedCase& c : NeighbourCases()) {
    const char* const architectures[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
    ExpectCompiles(c, architectures[i++ % 5]);
  }
}

// Inlined, a thousand tangents take NVRTC minutes, which nothing can stop.
TEST_F(CudaPrinterTest, FunctionsThatManyCallAreNotInlined) {
  const PrintedCase few = {"few", FunctionsProgram(1000, 40), {}}, many = {"many", FunctionsProgram(1000, 1000), {}};
  EXPECT_FALSE(absl::StrContains(PrintCuda(few.program, few.options).source, "__noinline__"));
  EXPECT_TRUE(
      absl::StrContains(PrintCuda(many.program, many.options).source, "__device__ __noinline__ R TanReal(R x)"));
  ExpectCompiles(many, "sm_90");
}

// A chain of `count` steps from an operand on, each `step` of the value before.
template <typename Step>
MicroProgram ChainProgram(int64_t points, DType dtype, int count, const Step& step) {
  MicroBuilder b(std::vector<MicroAxis>{{.size = points}});
  const int32_t x = b.Load(dtype, MicroLevel::kFull), y = b.Load(dtype, MicroLevel::kFull);
  int32_t value = x;
  for (int i = 0; i < count; ++i) value = step(&b, value, y);
  b.Result(value);
  return b.Build();
}

// So do extremes of doubles and complex numbers and conversions that branch, which take seconds.
TEST_F(CudaPrinterTest, WhateverBranchesIsNotInlinedWhereManyCallIt) {
  const auto source = [](DType dtype, int count, const auto& step) {
    const PrintedCase c = {"chain", ChainProgram(1000, dtype, count, step), {}};
    ExpectCompiles(c, "sm_90");
    return PrintCuda(c.program, c.options).source;
  };
  const auto largest = [](MicroBuilder* b, int32_t x, int32_t y) { return b->Binary(CoreOp::kMaximum, x, y); };
  const auto smallest = [](MicroBuilder* b, int32_t x, int32_t y) { return b->Binary(CoreOp::kMinimum, x, y); };
  const auto clamped = [](MicroBuilder* b, int32_t x, int32_t y) { return b->Clamp(y, x, y); };
  const auto modulus = [](MicroBuilder* b, int32_t x, int32_t y) {
    return b->Binary(CoreOp::kAdd, b->Convert(DType::kC128, b->Unary(CoreOp::kAbs, x)), y);
  };
  const auto there_and_back = [](MicroBuilder* b, int32_t x, int32_t) {
    return b->Convert(DType::kI64, b->Convert(DType::kF16, x));
  };
  EXPECT_FALSE(absl::StrContains(source(DType::kC128, 40, largest), "__noinline__"));
  EXPECT_FALSE(absl::StrContains(source(DType::kF32, 1000, largest), "__noinline__")) << "an instruction";
  const std::string called[] = {source(DType::kC128, 100, largest), source(DType::kC64, 100, smallest),
                                source(DType::kF64, 100, largest),  source(DType::kF64, 50, clamped),
                                source(DType::kC128, 100, modulus), source(DType::kI64, 50, there_and_back)};
  const char* const functions[] = {"MaximumComplex", "MinimumComplex", "MaximumReal",
                                   "MinimumReal",    "AbsComplex",     "IntegerToOdd"};
  for (size_t i = 0; i < std::size(called); ++i) {
    const size_t at = called[i].find(std::string(" ") + functions[i] + "(");
    ASSERT_NE(at, std::string::npos) << functions[i];
    const std::string line = called[i].substr(called[i].rfind('\n', at) + 1, at - called[i].rfind('\n', at));
    EXPECT_TRUE(absl::StrContains(line, "__noinline__")) << functions[i] << ": " << line;
  }
}

// One instruction in place of several, where there is one.
TEST_F(CudaPrinterTest, ExtremesAndRoundingAreTheDevicesOwn) {
  const std::string softmax = PrintCuda(SoftmaxProgram(1000, 100, DType::kBF16), {}).source;
  const std::string columns = PrintCuda(ColumnsProgram(8192, 65536, DType::kF32), {}).source;
  const auto new_ptx = Nvrtc::Get()->Compile(softmax, CompileOptions("compute_80"));
  const auto old_ptx = Nvrtc::Get()->Compile(softmax, CompileOptions("compute_75"));
  ASSERT_TRUE(new_ptx.ok() && old_ptx.ok()) << new_ptx.status() << old_ptx.status();
  for (const char* instruction : {"max.NaN.f32", "cvt.rn.bf16.f32"}) {
    EXPECT_NE(new_ptx->find(instruction), std::string::npos) << instruction;
    EXPECT_EQ(old_ptx->find(instruction), std::string::npos) << instruction;
  }
  const auto columns_ptx = Nvrtc::Get()->Compile(columns, CompileOptions("compute_90"));
  ASSERT_TRUE(columns_ptx.ok()) << columns_ptx.status();
  EXPECT_NE(columns_ptx->find("ld.global.nc.v4"), std::string::npos) << *columns_ptx;
}

// 16-bit floats are computed two neighbours at a time: arithmetic in one instruction, functions in F32 with one
// rounding for both.
TEST_F(CudaPrinterTest, NeighboursOfHalvesShareARegister) {
  const std::string brain = PrintCuda(GeluProgram<BFloat16>(8192, 8192), {}).source;
  const std::string half = PrintCuda(GeluProgram<Float16>(8192, 8192), {}).source;
  const auto has = [](const std::string& source, const char* architecture, absl::string_view instruction) {
    const auto ptx = Nvrtc::Get()->Compile(source, CompileOptions(architecture));
    EXPECT_TRUE(ptx.ok()) << ptx.status();
    return ptx.ok() && absl::StrContains(*ptx, instruction);
  };
  for (const char* op : {"add.rn.", "sub.rn.", "mul.rn."}) {
    for (const char* architecture : {"compute_90", "compute_120"}) {
      EXPECT_TRUE(has(brain, architecture, absl::StrCat(op, "bf16x2"))) << op << architecture;
      EXPECT_TRUE(has(half, architecture, absl::StrCat(op, "f16x2"))) << op << architecture;
    }
    EXPECT_FALSE(has(brain, "compute_75", absl::StrCat(op, "bf16x2"))) << op;
    EXPECT_TRUE(has(half, "compute_75", absl::StrCat(op, "f16x2"))) << op;
  }
  EXPECT_TRUE(has(brain, "compute_80", "fma.rn.bf16x2"));
  for (const char* architecture : {"compute_80", "compute_90"}) {
    EXPECT_TRUE(has(brain, architecture, "cvt.rn.bf16x2.f32") && has(half, architecture, "cvt.rn.f16x2.f32"));
    EXPECT_FALSE(has(brain, architecture, "cvt.rn.bf16.f32") || has(half, architecture, "cvt.rn.f16.f32"));
  }
  EXPECT_FALSE(has(brain, "compute_90", "fma.rn.bf16x2") || has(half, "compute_90", "fma.rn.f16x2")) << "contracted";
  for (const std::string& source : {brain, half}) {
    for (const char* architecture : {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"}) {
      const absl::StatusOr<int> registers = Nvrtc::Get()->Registers(source, CompileOptions(architecture));
      ASSERT_TRUE(registers.ok()) << architecture << ": " << registers.status();
      EXPECT_LE(*registers, 64) << architecture;
    }
  }
}

TEST(CudaPairsTest, ValuesOfOtherTypesAndElementsThatLieApartGoOneByOne) {
  MicroBuilder b({{.size = 8192}, {.size = 8192}});
  const int32_t x = b.Load(DType::kBF16, MicroLevel::kFull);
  b.Result(b.Convert(DType::kF32, b.Binary(CoreOp::kAdd, x, x)));
  EXPECT_FALSE(absl::StrContains(PrintCuda(b.Build(), {}).source, "BF16x2"));
  MicroBuilder apart({{.size = 8192}, {.size = 8192}});
  const int32_t y = apart.Load(DType::kBF16, MicroLevel::kFull, {.strides = {8192, 1}});
  apart.Result(apart.Binary(CoreOp::kAdd, y, y));
  EXPECT_FALSE(absl::StrContains(PrintCuda(apart.Build(), {}).source, "BF16x2"));
}

// The sum, difference or product of two halves rounded once: as the devices' instructions do.
template <typename T>
T RoundedOnce(CoreOp op, T a, T b) {
  const double x = static_cast<float>(a), y = static_cast<float>(b);
  double exact = op == CoreOp::kAdd ? x + y : op == CoreOp::kSubtract ? x - y : x * y;
  if (op != CoreOp::kMultiply && std::isfinite(exact)) {
    // What the double lost is kept in its last bit.
    const double other = op == CoreOp::kAdd ? y : -y, back = exact - x;
    const double lost = (x - (exact - back)) + (other - back);
    if (lost != 0 && (std::bit_cast<uint64_t>(exact) & 1) == 0) {
      const double infinity = std::numeric_limits<double>::infinity();
      exact = std::nextafter(exact, lost > 0 ? infinity : -infinity);
    }
  }
  // To a float whose last bit says that something was lost.
  const float nearest = static_cast<float>(exact);
  if (nearest == exact || !std::isfinite(nearest)) return T(nearest);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(exact)) --bits;
  return T(std::bit_cast<float>(bits | 1u));
}

template <typename T>
void ExpectTwoRoundingsAreOne(uint16_t first, uint16_t second) {
  const T a = T::FromBits(first), b = T::FromBits(second);
  const float x = static_cast<float>(a), y = static_cast<float>(b);
  for (const CoreOp op : {CoreOp::kAdd, CoreOp::kSubtract, CoreOp::kMultiply}) {
    const T twice(op == CoreOp::kAdd ? x + y : op == CoreOp::kSubtract ? x - y : x * y);
    if (std::isnan(static_cast<float>(twice))) continue;
    ASSERT_EQ(RoundedOnce(op, a, b).bits, twice.bits) << first << " " << second << " " << Def(op).name;
  }
}

TEST(CudaPairsTest, TwoRoundingsAreOne) {
  std::mt19937_64 random(1);
  // A BF16 with an exponent near this one, which is about that of a number.
  const auto near = [&](int exponent) {
    const int drawn = std::clamp(exponent + static_cast<int>(random() % 21) - 10, 0, 254);
    return static_cast<uint16_t>((random() & 0x807f) | static_cast<unsigned>(drawn) << 7);
  };
  for (int i = 0; i < 2'000'000 && !testing::Test::HasFatalFailure(); ++i) {
    const auto first = static_cast<uint16_t>(random()), any = static_cast<uint16_t>(random());
    const int exponent = first >> 7 & 0xff;
    ExpectTwoRoundingsAreOne<Float16>(first, any);
    ExpectTwoRoundingsAreOne<BFloat16>(first, any);
    ExpectTwoRoundingsAreOne<BFloat16>(first, near(exponent));        // sums
    ExpectTwoRoundingsAreOne<BFloat16>(first, near(127 - exponent));  // products that are hardly a number
  }
}

// A neighbour's place is an int: its product with a stride that is one as well would be one.
TEST(CudaIndexTest, NeighboursOfLongStridesAreFoundIn64Bits) {
  EXPECT_EQ(CudaNeighbourStride(3), "3");
  EXPECT_EQ(CudaNeighbourStride(-100000000), "-100000000");
  EXPECT_EQ(CudaNeighbourStride(1 << 30), "1073741824ll");
  EXPECT_EQ(CudaNeighbourStride(-(int64_t{1} << 29)), "-536870912ll");
  EXPECT_EQ(CudaNeighbourStride(int64_t{1} << 33), "8589934592ll");
}

TEST(CudaLaunchTest, ManyRowsHaveAsFewLanesAsKeepThemInRegisters) {
  const CudaOptions options = {.max_shared_bytes = 227 * 1024};
  const auto launch = [&](const MicroProgram& program) {
    const KernelText kernel = PrintCuda(program, options);
    EXPECT_EQ(kernel.launches.size(), 1u);
    // What is carried from the first pass is dead when the second keeps its own.
    EXPECT_NE(kernel.source.find("c0["), std::string::npos);
    EXPECT_EQ(kernel.source.find("c1["), std::string::npos) << kernel.source;
    return kernel.launches[0];
  };
  const CudaLaunch warp = launch(SoftmaxProgram(1024, 32768, DType::kF32));
  EXPECT_EQ(warp.blocks * warp.threads_per_block, 32768 * 32);
  EXPECT_EQ(warp.dynamic_shared_bytes, 0) << "a warp joins by itself";
  const CudaLaunch block = launch(SoftmaxProgram(32768, 8192, DType::kF32));
  EXPECT_EQ(block.threads_per_block, 1024);
  EXPECT_LE(block.dynamic_shared_bytes, 128) << "a word for each warp";
  EXPECT_EQ(launch(SoftmaxProgram(50000, 8192, DType::kF32)).dynamic_shared_bytes / 1024, 208)
      << "a row, for whole turns of all threads";
}

TEST(CudaLaunchTest, ColumnsAreCutUntilTheDeviceIsFull) {
  const KernelText kernel = PrintCuda(ColumnsProgram(8192, 65536, DType::kF32), {});
  ASSERT_EQ(kernel.launches.size(), 2u);
  const CudaLaunch& parts = kernel.launches[0];
  EXPECT_GE(parts.blocks * parts.threads_per_block, 132 * 2048);
  EXPECT_LE(kernel.scratch_bytes, int64_t{65536} * 8192 * 4 / 100) << "what the parts write and read again";
}

// Nothing stops a launch.
TEST(CudaLaunchTest, WhatTakesLongIsCut) {
  const auto parts = [](const MicroProgram& program) {
    const KernelText kernel = PrintCuda(program, {});
    EXPECT_EQ(kernel.launches.size(), 1u);
    return kernel.launches[0].parts;
  };
  EXPECT_EQ(parts(SoftmaxProgram(32768, 8192, DType::kF32)), 1) << "a GiB";
  const int64_t side = int64_t{1} << 20;
  EXPECT_GT(parts(VarianceProgram(side, side, DType::kF32)), 50);
  const auto functions = [](int64_t points) {
    MicroBuilder b(std::vector<MicroAxis>{{.size = points}});
    int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
    for (int i = 0; i < 20; ++i) x = b.Unary(CoreOp::kSin, x);
    b.Result(x);
    return b.Build();
  };
  EXPECT_EQ(parts(functions(int64_t{1} << 28)), 1);
  EXPECT_GT(parts(functions(int64_t{1} << 34)), 10);
  // Few blocks fill the device, and parts of them would not.
  EXPECT_EQ(parts(VarianceProgram(int64_t{1} << 20, 200, DType::kF32)), 1);
}

// Some functions are loops.
TEST(CudaLaunchTest, WhatTakesLongIsCutByWhatItsFunctionsTake) {
  const auto printed = [](CoreOp op, DType dtype, int64_t points, int count) {
    return PrintCuda(
        ChainProgram(points, dtype, count, [&](MicroBuilder* b, int32_t x, int32_t y) { return b->Binary(op, x, y); }),
        {});
  };
  struct Function {
    CoreOp op;
    DType dtype;
    int64_t least_parts;  // of 46 of them in 2^27 points
    bool varies;
  };
  const Function functions[] = {
      {CoreOp::kPow, DType::kI64, 30, true},       {CoreOp::kPow, DType::kI32, 5, true},
      {CoreOp::kPow, DType::kC128, 60, false},     {CoreOp::kPow, DType::kC64, 60, false},
      {CoreOp::kPow, DType::kF64, 7, false},       {CoreOp::kRemainder, DType::kF64, 60, true},
      {CoreOp::kRemainder, DType::kF32, 10, true}, {CoreOp::kRemainder, DType::kF16, 10, true},
      {CoreOp::kRemainder, DType::kI64, 2, false}, {CoreOp::kAtan2, DType::kF64, 3, false},
      {CoreOp::kDivide, DType::kI64, 2, false},    {CoreOp::kDivide, DType::kC128, 10, false}};
  for (const Function& f : functions) {
    SCOPED_TRACE(absl::StrCat(Def(f.op).name, " of ", Name(f.dtype)));
    const KernelText many = printed(f.op, f.dtype, int64_t{1} << 27, 46);
    ASSERT_EQ(many.launches.size(), 1u);
    EXPECT_GE(many.launches[0].parts, f.least_parts);
    EXPECT_EQ(many.varies, f.varies);
    const KernelText one = printed(f.op, f.dtype, int64_t{1} << 16, 1);
    EXPECT_EQ(one.launches[0].parts, 1);
    EXPECT_FALSE(one.varies) << "however long it takes, that is no time";
  }
  for (const CoreOp op : {CoreOp::kAdd, CoreOp::kMultiply, CoreOp::kMaximum, CoreOp::kDivide}) {
    EXPECT_EQ(printed(op, DType::kF32, int64_t{1} << 27, 46).launches[0].parts, 1) << Def(op).name;
  }
}

TEST(CudaLaunchTest, ReductionsOfLoopsAreCutAndVary) {
  MicroBuilder b({{.size = 1024, .is_reduced = true}, {.size = int64_t{1} << 20}});
  const int32_t x = b.Load(DType::kF64, MicroLevel::kFull), y = b.Load(DType::kF64, MicroLevel::kFull);
  b.Result(b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kRemainder, x, y)));
  const KernelText kernel = PrintCuda(b.Build(), {});
  ASSERT_EQ(kernel.launches.size(), 1u);
  EXPECT_GE(kernel.launches[0].parts, 10);
  EXPECT_TRUE(kernel.varies);
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
