#ifndef TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_
#define TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "backends/cpu/kernel/family_kernel.h"
#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Returns the factory of kernels of an op of the core, or of an op that passes make of core ops; nullptr for others.
// Every core op has an entry, which is checked when the table is compiled.
MakeKernel* FactoryOf(const OpDef& op);

// nullptr if the CPU has none for the extension.
MakeFamilyKernel* FamilyFactoryOf(const OpDef& op);

// Checks that `kernels` fit `ops`. INVALID_ARGUMENT, with the fault, for a kernel of another op or of an expanded op,
// one that cannot be made, two of one op, or none of an op that is not expanded.
absl::Status AuditFamilyKernels(absl::Span<const FamilyKernel> kernels, absl::Span<const OpDef> ops);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_
