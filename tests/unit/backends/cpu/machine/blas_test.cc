#include "backends/cpu/machine/blas.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

TEST(BlasCoreTest, AProcessorThatIsTakenForAnOldOneShouldRunTheKernelsForWhatItCanDo) {
  EXPECT_EQ(BetterBlasCore("Prescott", true, true), "SkylakeX");
  EXPECT_EQ(BetterBlasCore("prescott", true, false), "Haswell");
  EXPECT_EQ(BetterBlasCore("Barcelona", true, false), "Haswell");
  EXPECT_EQ(BetterBlasCore("Sandybridge", true, false), "Haswell");
}

TEST(BlasCoreTest, WhatFitsOrIsUnknownStays) {
  EXPECT_EQ(BetterBlasCore("Sandybridge", false, false), "");
  EXPECT_EQ(BetterBlasCore("Prescott", false, false), "");
  for (const char* core : {"Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids", "Excavator", "OfTheFuture"}) {
    EXPECT_EQ(BetterBlasCore(core, true, true), "") << core;
  }
}

TEST(BlasCoreTest, KernelsNeedWhatTheirProcessorHad) {
  const ProcessorFeatures none;
  EXPECT_EQ(MissingForBlasCore("Opteron", none), "3DNow!");
  EXPECT_EQ(MissingForBlasCore("bulldozer", none), "FMA4");
  EXPECT_EQ(MissingForBlasCore("Haswell", none), "AVX2");
  EXPECT_EQ(MissingForBlasCore("SkylakeX", {.avx2_fma = true}), "AVX-512");
  EXPECT_EQ(MissingForBlasCore("SkylakeX", {.avx512 = true}), "");
  for (const char* core : {"Prescott", "OfTheFuture", ""}) EXPECT_EQ(MissingForBlasCore(core, none), "") << core;
  EXPECT_TRUE(CheckBlasCore().ok()) << "OpenBLAS itself chooses none that it cannot run";
}

TEST(BlasCoreTest, KeepsToAnInstructionSet) {
  EXPECT_EQ(BlasCoreWithin("SkylakeX", CpuIsa::kAvx512), "");
  EXPECT_EQ(BlasCoreWithin("SkylakeX", CpuIsa::kAvx2), "Haswell");
  EXPECT_EQ(BlasCoreWithin("Zen", CpuIsa::kAvx2), "");
  EXPECT_EQ(BlasCoreWithin("Zen", CpuIsa::kSse4), "Nehalem");
  EXPECT_EQ(BlasCoreWithin("Sandybridge", CpuIsa::kSse4), "Nehalem");
  EXPECT_EQ(BlasCoreWithin("nehalem", CpuIsa::kSse4), "");
  EXPECT_EQ(BlasCoreWithin("Nehalem", CpuIsa::kBaseline), "Prescott");
  EXPECT_EQ(BlasCoreWithin("Prescott", CpuIsa::kBaseline), "");
}

TEST(BlasCoreTest, TheFittingOneIsTheNewestWithinTheInstructionSet) {
  const ProcessorFeatures all = {
      .ssse3 = true, .sse4_1 = true, .sse4_2 = true, .avx = true, .avx2_fma = true, .avx512 = true};
  EXPECT_EQ(FittingBlasCore("Prescott", all, std::nullopt), "SkylakeX");
  EXPECT_EQ(FittingBlasCore("Prescott", all, CpuIsa::kAvx512), "SkylakeX");
  EXPECT_EQ(FittingBlasCore("Prescott", all, CpuIsa::kAvx2), "Haswell");
  EXPECT_EQ(FittingBlasCore("Prescott", all, CpuIsa::kSse4), "Nehalem");
  EXPECT_EQ(FittingBlasCore("prescott", all, CpuIsa::kBaseline), "");
  EXPECT_EQ(FittingBlasCore("SkylakeX", all, CpuIsa::kAvx2), "Haswell");
  for (const char* core : {"SkylakeX", "Cooperlake", "Zen", "OfTheFuture"}) {
    EXPECT_EQ(FittingBlasCore(core, all, std::nullopt), "") << core;
  }
  EXPECT_EQ(FittingBlasCore("Prescott", ProcessorFeatures(), std::nullopt), "") << "that is all it can";
}

TEST(BlasCoreTest, WhichKernelsRoundByAddress) {
  EXPECT_TRUE(BlasRoundsByAddress("Prescott"));
  EXPECT_TRUE(BlasRoundsByAddress("sandybridge"));
  EXPECT_FALSE(BlasRoundsByAddress("Haswell"));
  EXPECT_FALSE(BlasRoundsByAddress("SkylakeX"));
}

// OpenBLAS reads its environment before main, hence a process of its own.
TEST(BlasCoreDeathTest, WhatTheEnvironmentChoosesIsSeen) {
#ifndef __x86_64__
  GTEST_SKIP() << "the cores are those of x86-64";
#endif
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no kernels are newer than this processor";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("OPENBLAS_CORETYPE", "Prescott", 1);
  EXPECT_EXIT(
      {
        const auto outdated = FindOutdatedBlasCore();
        std::_Exit(outdated.has_value() && outdated->core == "Prescott" && !outdated->better.empty() ? 7 : 0);
      },
      ::testing::ExitedWithCode(7), "");
  setenv("OPENBLAS_CORETYPE", "Haswell", 1);
  EXPECT_EXIT(std::_Exit(FindOutdatedBlasCore().has_value() ? 0 : 7), ::testing::ExitedWithCode(7), "");
  unsetenv("OPENBLAS_CORETYPE");
}

}  // namespace
}  // namespace tensord::cpu
