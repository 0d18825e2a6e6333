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

// Of the machine, whichever of them this process may use: what is cut by them is cut alike in every process.
int64_t MachineCores();

// What OpenBLAS takes the processor for, where that is older than what it can do: a release of OpenBLAS knows the
// processors of its time, and has newer ones run the kernels of one from 2004, several times slower than those for
// AVX2. Its environment decides before the process does anything, OPENBLAS_CORETYPE.
struct OutdatedBlasCore {
  std::string core;
  std::string better;  // by OpenBLAS's name too
};

// Nothing where the kernels fit the processor.
std::optional<OutdatedBlasCore> FindOutdatedBlasCore();

// What a processor lacks that OpenBLAS's kernels for the core need: "3DNow!"; empty where it can run them, or nothing
// is known of them. Only OPENBLAS_CORETYPE chooses such ones.
struct ProcessorFeatures {
  bool ssse3 = false, sse4_1 = false, sse4_2 = false, sse4a = false, amd_3dnow = false, avx = false, fma4 = false;
  bool avx2_fma = false, avx512 = false;
};
ProcessorFeatures FeaturesOfThisProcessor();
absl::string_view MissingForBlasCore(absl::string_view core, const ProcessorFeatures& features);

// INVALID_ARGUMENT where OpenBLAS would run kernels that this processor lacks instructions for.
absl::Status CheckBlasCore();

// The core whose kernels a processor should run instead of those for `core`, by what else it can do; empty where they
// fit, or where nothing is known of them.
absl::string_view BetterBlasCore(absl::string_view core, bool has_avx2, bool has_avx512);

// The core whose kernels keep to an instruction set, where those of `core` do not; empty where they do, or where
// nothing is known of them.
absl::string_view BlasCoreWithin(absl::string_view core, CpuIsa isa);

// The same of the core that OpenBLAS runs in this process. Empty on other architectures.
std::string BlasCoreWithin(CpuIsa isa);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_BLAS_H_
