#ifndef TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_
#define TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/cpu/kernel.h"

namespace tensord::cpu {

class FftTransforms;

// What kernels of the families that are built in share with later ones. The backend keeps it, and each of its caches is
// bounded; a kernel shares ownership of what it uses, so what is dropped is never freed under it.
struct FamilyCaches {
  FftTransforms* fft = nullptr;  // never null for a kernel's factory
};

// As MakeKernel, with what the backend keeps for the families. A plugin has no part in that: what its kernels share it
// keeps itself.
using MakeFamilyKernel = absl::StatusOr<std::unique_ptr<Kernel>>(const BoundInstruction& instruction,
                                                                 const FamilyCaches& caches);

// How the CPU makes kernels of an op of a family.
struct FamilyKernel {
  absl::string_view op;  // OpDef::name
  MakeFamilyKernel* make;
};

// nullptr where the CPU has none for the extension.
MakeFamilyKernel* FamilyFactoryOf(const OpDef& op);

// INVALID_ARGUMENT, saying what is wrong, where `kernels` are not for `ops`: one of another op or of one that is
// expanded, one that cannot be made, two of one op, or none of an op that is not expanded.
absl::Status AuditFamilyKernels(absl::Span<const FamilyKernel> kernels, absl::Span<const OpDef> ops);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FAMILY_KERNELS_H_
