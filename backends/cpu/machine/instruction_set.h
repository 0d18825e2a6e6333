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

// Returns the sets that this processor has, the baseline first, whatever UseCpuIsa said.
std::vector<CpuIsa> MachineCpuIsas();

// Checks that `name` is "auto" or one of the instruction sets that a processor has; INVALID_ARGUMENT, which names them,
// if not.
absl::Status CheckCpuIsa(absl::string_view name, absl::Span<const CpuIsa> available = MachineCpuIsas());

// Keeps all kernels of the process to one instruction set and those before it, as if the processor had no others:
// vector loops, machine code for fused kernels, products of matrices, Fourier transforms. "auto": all sets that the
// processor has. OpenBLAS chose when it was loaded (blas.h). Fails as CheckCpuIsa does, and then changes nothing.
//
// Thread-safe, but kernels prepared before run on partly as they were. All kernels are bound if no program is compiled
// or run meanwhile, and no older program is run afterwards.
absl::Status UseCpuIsa(absl::string_view name);

// Returns the best that kernels may use now.
CpuIsa CpuIsaInUse();

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CPU_MACHINE_INSTRUCTION_SET_H_
