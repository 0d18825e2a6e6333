#ifndef TENSORD_BACKENDS_CUDA_KERNEL_TABLE_H_
#define TENSORD_BACKENDS_CUDA_KERNEL_TABLE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/cuda/kernels/kernel.h"
#include "engine/ir/op_def.h"

namespace tensord::cuda {

// The kernels of an op: how one is made, and for which dtypes of the first operand that is computed with.
struct OpKernels {
  MakeKernel* make = nullptr;  // null: there are none
  DTypeSet dtypes = {};
};

// Returns the kernels of an op: of the core, of those that passes make of core ops, or of a family. Every core op has
// an entry in the table, which is checked when the table is compiled.
OpKernels KernelsOf(const OpDef& op);

// Tells whether there is a kernel of the op on operands whose first is of that dtype.
bool HasKernel(const OpDef& op, DType first);

// Checks what Backend::Supports does. UNSUPPORTED_ON_DEVICE names the device.
absl::Status CheckHasKernel(absl::string_view device, const OpDef& op, absl::Span<const DType> operands, DType result);

// Checks that a family's kernels fit its ops. INVALID_ARGUMENT, with the fault, for a kernel of another op or of an
// expanded op, one that cannot be made, one for a dtype that its op refuses, or two of one op.
absl::Status AuditFamilyKernels(absl::Span<const FamilyKernel> kernels, absl::Span<const OpDef> ops);

// Makes the kernel of an instruction. UNSUPPORTED_ON_DEVICE, naming the missing feature, if there is none.
MakeKernel MakeKernelOf;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNEL_TABLE_H_
