#ifndef TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_
#define TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_

#include "absl/strings/string_view.h"
#include "backends/cpu/kernel.h"

namespace tensord::cpu {

// How the CPU makes kernels of an op of a family.
struct FamilyKernel {
  absl::string_view op;  // OpDef::name
  MakeKernel* make;
};

// nullptr where the CPU has none for the extension.
MakeKernel* FamilyFactoryOf(const OpDef& op);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_
