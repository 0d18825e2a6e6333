#ifndef TENSORD_BACKENDS_CPU_JIT_OPTIONS_H_
#define TENSORD_BACKENDS_CPU_JIT_OPTIONS_H_

#include "backends/cpu/jit/code.h"

namespace tensord::cpu {

// Options for fused kernels: machine code made together with them, or steps of precompiled functions. The results have
// the same bits.
struct JitOptions {
  enum class Use {
    kNever,
    kWhereItPays,
    kAlways,  // wherever there is code for an instruction, for tests
  };
  Use use = Use::kWhereItPays;
  ProtectCode protect = &ProtectByMprotect;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_OPTIONS_H_
