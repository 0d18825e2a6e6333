#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_INSTRUCTION_SETS_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_INSTRUCTION_SETS_H_

#include <string>

#include "absl/cleanup/cleanup.h"
#include "backends/cpu/machine/instruction_set.h"
#include "gtest/gtest.h"

namespace tensord::cpu {

// Runs body(name) once for every instruction set that this machine has, with kernels kept to it.
template <typename Body>
void ForEachInstructionSet(Body body) {
  const absl::Cleanup back = [] { EXPECT_TRUE(UseCpuIsa("auto").ok()); };
  for (const CpuIsa isa : MachineCpuIsas()) {
    const std::string name(Name(isa));
    SCOPED_TRACE(name);
    ASSERT_TRUE(UseCpuIsa(name).ok());
    body(name.c_str());
  }
}

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_INSTRUCTION_SETS_H_
