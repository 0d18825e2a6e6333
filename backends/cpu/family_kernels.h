#ifndef TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_
#define TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "backends/cpu/kernel/family_kernel.h"

namespace tensord::cpu {

// nullptr where the CPU has none for the extension.
MakeFamilyKernel* FamilyFactoryOf(const OpDef& op);

// INVALID_ARGUMENT, saying what is wrong, where `kernels` are not for `ops`: one of another op or of one that is
// expanded, one that cannot be made, two of one op, or none of an op that is not expanded.
absl::Status AuditFamilyKernels(absl::Span<const FamilyKernel> kernels, absl::Span<const OpDef> ops);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_
