#ifndef TENSORD_BACKENDS_CPU_MACHINE_BLAS_H_
#define TENSORD_BACKENDS_CPU_MACHINE_BLAS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "backends/cpu/machine/instruction_set.h"

namespace tensord::cpu {

// Keeps OpenBLAS from having threads of its own: the backend's pool splits the work. To be called before the first
// product, and by everyone who makes one; the first call counts. Process-wide.
void UseSerialBlas();

// Returns the cores of the machine, whichever of them this process may use: work cut by them is cut alike in every
// process.
int64_t MachineCores();

// OpenBLAS's choice of a core, if it is older than the processor. A release of OpenBLAS knows the processors of its
// time, and gives newer ones the kernels of one from 2004, several times slower than those for AVX2. The variable
// OPENBLAS_CORETYPE decides, before the process does anything.
struct OutdatedBlasCore {
  std::string core;
  std::string better;  // by OpenBLAS's name too
};

// Returns nothing if the kernels fit the processor.
std::optional<OutdatedBlasCore> FindOutdatedBlasCore();

// True if OpenBLAS's kernels round by the address of a matrix: those without AVX2 begin apart where it does not lie on
// 16 bytes, and add in another order.
bool BlasRoundsByAddress();
bool BlasRoundsByAddress(absl::string_view core);

// Features of a processor that decide which of OpenBLAS's kernels it can run.
struct ProcessorFeatures {
  bool ssse3 = false, sse4_1 = false, sse4_2 = false, sse4a = false, amd_3dnow = false, avx = false, fma4 = false;
  bool avx2_fma = false, avx512 = false;
};
ProcessorFeatures FeaturesOfThisProcessor();
absl::string_view MissingForBlasCore(absl::string_view core, const ProcessorFeatures& features);

// Checks the chosen core. INVALID_ARGUMENT if OpenBLAS would run kernels with instructions that this processor lacks.
absl::Status CheckBlasCore();

// Returns the core whose kernels a processor should run instead of those for `core`, by its other features; empty if
// those fit, or if nothing is known of them.
absl::string_view BetterBlasCore(absl::string_view core, bool has_avx2, bool has_avx512);

// Returns the core whose kernels keep to an instruction set, if those of `core` do not; empty if they do, or if nothing
// is known of them.
absl::string_view BlasCoreWithin(absl::string_view core, CpuIsa isa);

// The same of the core that OpenBLAS runs in this process. Empty on other architectures.
std::string BlasCoreWithin(CpuIsa isa);

// Returns the core that OpenBLAS should run instead of `core`: the newest kernels that the processor has, within the
// instruction set if there is one. Empty if `core` fits.
absl::string_view FittingBlasCore(absl::string_view core, const ProcessorFeatures& features, std::optional<CpuIsa> isa);
// The same of this process and this processor. Empty on other architectures.
std::string FittingBlasCore(std::optional<CpuIsa> isa);

// Begins the program again with that core in OPENBLAS_CORETYPE, unless it is empty, that variable is set, or it cannot
// be done. To be called first in main.
void BeginAgainWithBlasCore(const std::string& core, char** argv);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_BLAS_H_
