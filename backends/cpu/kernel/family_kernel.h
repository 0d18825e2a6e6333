#ifndef TENSORD_BACKENDS_CPU_KERNEL_FAMILY_KERNEL_H_
#define TENSORD_BACKENDS_CPU_KERNEL_FAMILY_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

class FftTransforms;

// What a kernel of a family is made with, beside its instruction.
struct FamilyContext {
  // What kernels of the families that are built in share with later ones. The backend keeps it, and each of its caches
  // is bounded; a kernel shares ownership of what it uses, so what is dropped is never freed under it. A plugin has no
  // part in that: what its kernels share it keeps itself.
  FftTransforms* fft = nullptr;  // never null for a kernel's factory
  // SegmentInstruction::num_readers; empty where that is not known.
  absl::Span<const int32_t> num_readers = {};

  // A result that nobody reads has its memory like others; what a kernel leaves there is its own business.
  bool reads_result(size_t i) const { return num_readers.empty() || num_readers[i] > 0; }
};

// As MakeKernel.
using MakeFamilyKernel = absl::StatusOr<std::unique_ptr<Kernel>>(const BoundInstruction& instruction,
                                                                 const FamilyContext& context);

// How the CPU makes kernels of an op of a family.
struct FamilyKernel {
  absl::string_view op;  // OpDef::name
  MakeFamilyKernel* make;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_KERNEL_FAMILY_KERNEL_H_
