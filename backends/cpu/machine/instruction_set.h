#ifndef TENSORD_BACKENDS_CPU_MACHINE_INSTRUCTION_SET_H_
#define TENSORD_BACKENDS_CPU_MACHINE_INSTRUCTION_SET_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord {

// The instruction sets that kernels are made for, each with all before it.
enum class CpuIsa : uint8_t {
  kBaseline,  // what every processor of the architecture has
  kSse4,
  kAvx2,        // and fused multiply-add
  kAvx512,      // F, BW, CD, DQ and VL
  kAvx512Bf16,  // and products of BF16
};
absl::string_view Name(CpuIsa isa);

// Those that this processor has, the baseline first, whatever UseCpuIsa said.
std::vector<CpuIsa> MachineCpuIsas();

// Whether `name` is "auto" or one of the instruction sets that a processor has; INVALID_ARGUMENT, which names those,
// where not.
absl::Status CheckCpuIsa(absl::string_view name, absl::Span<const CpuIsa> available = MachineCpuIsas());

// Keeps all kernels of the process to one instruction set and those before it, as if the processor had no others:
// vector loops, machine code that is made for fused kernels, products of matrices, Fourier transforms. "auto": to those
// that it has. OpenBLAS chose when it was loaded (blas_core.h). Fails as CheckCpuIsa does and changes nothing then.
//
// Thread-safe, but kernels that were prepared before run on partly as they were: where no program is compiled or run
// meanwhile, and is not run afterwards either, everything is bound.
absl::Status UseCpuIsa(absl::string_view name);

// The best that kernels may use now.
CpuIsa CpuIsaInUse();

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CPU_MACHINE_INSTRUCTION_SET_H_
