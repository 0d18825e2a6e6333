#ifndef TENSORD_BACKENDS_CPU_KERNEL_NOTHING_TO_DO_H_
#define TENSORD_BACKENDS_CPU_KERNEL_NOTHING_TO_DO_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// The kernel of an instruction whose results have no elements.
class NothingToDo final : public Kernel {
 public:
  void Run(const KernelArgs&) const override {}
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_KERNEL_NOTHING_TO_DO_H_
