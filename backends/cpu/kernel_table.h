#ifndef TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_
#define TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/cpu/jit/options.h"
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

// Makes the kernels of a backend: of all that the tables have, and of families that are not built in. Thread-safe.
class KernelFactory {
 public:
  // Borrows the parts that kernels share, and the tables.
  KernelFactory(const JitOptions& jit, FftTransforms& fft, absl::Span<const absl::Span<const FamilyKernel>> families);

  bool Has(const OpDef& op) const { return FactoryOf(op) != nullptr || FamilyOf(op) != nullptr; }
  // Makes a kernel. UNSUPPORTED_ON_DEVICE, naming the missing feature, if there is none. The readers may be empty if
  // they are not known.
  absl::StatusOr<std::unique_ptr<Kernel>> Make(const BoundInstruction& instruction,
                                               absl::Span<const int32_t> num_readers) const;

 private:
  // nullptr if there is none.
  MakeFamilyKernel* FamilyOf(const OpDef& op) const;

  const JitOptions jit_;
  FftTransforms& fft_;
  absl::flat_hash_map<absl::string_view, MakeFamilyKernel*> families_;  // that are not built in
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_
