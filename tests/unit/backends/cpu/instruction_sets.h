#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_INSTRUCTION_SETS_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_INSTRUCTION_SETS_H_

#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace tensord::cpu {

// Runs body(name) once for every instruction set that both the library and this machine have, with it chosen.
template <typename Body>
void ForEachInstructionSet(Body body) {
  for (int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_INSTRUCTION_SETS_H_
