#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_JIT_COMPARISON_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_JIT_COMPARISON_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/jit/options.h"
#include "backends/cpu/jit/program.h"
#include "engine/fusion/micro_program.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/fused/call.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/sample_values.h"

// Fused kernels as machine code against the same kernels as steps of precompiled functions.

namespace tensord::cpu {

inline constexpr JitOptions kCode = {.use = JitOptions::Use::kAlways};
inline constexpr JitOptions kSteps = {.use = JitOptions::Use::kNever};

// Runs body() once for every instruction set that code is made for, with it chosen.
template <typename Body>
void ForEachJitIsa(const Body& body) {
  ForEachInstructionSet([&](const std::string&) {
    if (BestJitIsa() != JitIsa::kNone) body();
  });
}

inline std::vector<Literal> SampleTensors(const MicroProgram& program, const std::vector<int64_t>& elements,
                                          uint64_t seed) {
  std::vector<Literal> tensors;
  for (size_t t = 0; t < elements.size(); ++t) tensors.push_back(Sample({program.tensors[t], {elements[t]}}, seed + t));
  return tensors;
}

// The first element that differs, or -1. NaN is NaN.
inline int64_t FirstDifference(DType dtype, const std::string& got, const std::string& want) {
  if (got == want) return -1;
  return VisitDType(dtype, [&]<typename T>(TypeTag<T>) -> int64_t {
    for (size_t i = 0; i < want.size() / sizeof(T); ++i) {
      T a, b;
      std::memcpy(&a, got.data() + i * sizeof(T), sizeof(T));
      std::memcpy(&b, want.data() + i * sizeof(T), sizeof(T));
      if (!Agree(a, b, 0)) return static_cast<int64_t>(i);
    }
    return -1;
  });
}

// One kernel as code and as steps.
inline bool ExpectSameBits(const MicroProgram& program, const std::vector<Literal>& tensors, const std::string& what) {
  const Fused code(program, kCode), steps(program, kSteps);
  if (!code.ok() || !steps.ok()) return false;
  std::vector<std::pair<int32_t, int32_t>> places = {{-1, -1}};
  for (const auto& pair : InPlacePairs(program)) places.push_back(pair);
  for (const auto& in_place : places) {
    const std::vector<std::string> got = code.Run(tensors, 1, in_place), want = steps.Run(tensors, 1, in_place);
    for (size_t r = 0; r < want.size(); ++r) {
      const DType dtype = program.instructions[static_cast<size_t>(program.results[r].value)].dtype;
      const int64_t where = FirstDifference(dtype, got[r], want[r]);
      EXPECT_EQ(where, -1) << what << ", result " << r << " in operand " << in_place.second << " of\n"
                           << ToString(program) << code.Describe();
      if (where != -1) return false;
    }
  }
  return true;
}

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_JIT_COMPARISON_H_
