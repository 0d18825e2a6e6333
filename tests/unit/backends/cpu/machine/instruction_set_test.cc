#include "backends/cpu/machine/instruction_set.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "backends/cpu/fft/transforms.h"
#include "backends/cpu/layout/strided_copy_loops.h"
#include "backends/cpu/math/vector_math_calls.h"
#include "backends/cpu/matmul/bf16_tiles.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

TEST(InstructionSetTest, EveryMachineHasTheBaselineAndUsesItsBest) {
  const std::vector<CpuIsa> isas = MachineCpuIsas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), CpuIsa::kBaseline);
  EXPECT_EQ(CpuIsaInUse(), isas.back());
}

// Each kind of choice among kernels, by what it chose.
TEST(InstructionSetTest, BindsWhateverChoosesByTheProcessor) {
  const absl::Cleanup back = [] { EXPECT_TRUE(UseCpuIsa("auto").ok()); };
  const CpuIsa best = MachineCpuIsas().back();
  const cpu::StridedCopyLoops* const loops_of_best = &cpu::GetStridedCopyLoops();  // one table an instruction set
  for (const CpuIsa isa : MachineCpuIsas()) {
    SCOPED_TRACE(std::string(Name(isa)));
    ASSERT_TRUE(UseCpuIsa(Name(isa)).ok());
    EXPECT_EQ(CpuIsaInUse(), isa);
    // Sets that differ by products alone have the same loops, and names after them.
    const CpuIsa loops = std::min(isa, CpuIsa::kAvx512);
    const bool has_loops = loops == std::min(best, CpuIsa::kAvx512) || best < CpuIsa::kAvx2;
    EXPECT_EQ(&cpu::GetStridedCopyLoops() == loops_of_best, has_loops);
    EXPECT_EQ(cpu::GetVectorMathCalls().vector_bytes, loops == CpuIsa::kAvx512 ? 64 : loops == CpuIsa::kAvx2 ? 32 : 0);
    const std::string lanes = loops < CpuIsa::kAvx2 ? "baseline" : std::string(Name(loops));
    EXPECT_EQ(std::string(cpu::BestFftLanes().name), lanes);
    EXPECT_EQ(cpu::GetBf16Tiles().rows > 0, isa == CpuIsa::kAvx512Bf16);
  }
}

TEST(InstructionSetTest, WhatTheProcessorDoesNotHaveIsRefused) {
  const CpuIsa some[] = {CpuIsa::kBaseline, CpuIsa::kSse4, CpuIsa::kAvx2};
  for (const char* name : {"auto", "baseline", "sse4", "avx2"}) EXPECT_TRUE(CheckCpuIsa(name, some).ok()) << name;
  const absl::Status missing = CheckCpuIsa("avx512", some);
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(missing.message(),
            "this processor does not have the instruction set avx512: name one of auto, baseline, sse4, avx2");
  const CpuIsa before = CpuIsaInUse();
  const absl::Status unknown = UseCpuIsa("avx9");
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("avx9"));
  EXPECT_EQ(CpuIsaInUse(), before);
}

}  // namespace
}  // namespace tensord
