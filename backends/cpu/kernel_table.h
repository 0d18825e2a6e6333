#ifndef TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_
#define TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_

#include "absl/status/statusor.h"
#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// How the CPU makes a kernel of an op of the core, or of what passes make of those: nullptr for others. Every core op
// has an entry, which is checked when the table is compiled.
MakeKernel* FactoryOf(const OpDef& op);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_KERNEL_TABLE_H_
