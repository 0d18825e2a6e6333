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

// The context in which a family's kernel is made, beside its instruction.
struct FamilyContext {
  // The state that kernels of built-in families share with later ones. The backend keeps it, and each of its caches is
  // bounded. A kernel shares ownership of the entries it uses, so a dropped entry is never freed under it. A plugin's
  // kernels keep their shared state themselves.
  FftTransforms* fft = nullptr;  // never null for a kernel's factory
  // SegmentInstruction::num_readers; empty if not known.
  absl::Span<const int32_t> num_readers = {};

  // Returns false for a result that nobody reads. It has memory like others; the kernel may leave anything there.
  bool reads_result(size_t i) const { return num_readers.empty() || num_readers[i] > 0; }
};

// Makes a kernel as MakeKernel does.
using MakeFamilyKernel = absl::StatusOr<std::unique_ptr<Kernel>>(const BoundInstruction& instruction,
                                                                 const FamilyContext& context);

// The factory of kernels for an op of a family.
struct FamilyKernel {
  absl::string_view op;  // OpDef::name
  MakeFamilyKernel* make;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_KERNEL_FAMILY_KERNEL_H_
