#ifndef TENSORD_BACKENDS_CPU_BLAS_CORE_H_
#define TENSORD_BACKENDS_CPU_BLAS_CORE_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::cpu {

// What OpenBLAS takes the processor for, where that is older than what it can do: a release of OpenBLAS knows the
// processors of its time, and has newer ones run the kernels of one from 2004, several times slower than those for
// AVX2. Its environment decides before the process does anything, OPENBLAS_CORETYPE.
struct OutdatedBlasCore {
  std::string core;
  std::string better;  // by OpenBLAS's name too
};

// Nothing where the kernels fit the processor.
std::optional<OutdatedBlasCore> FindOutdatedBlasCore();

// The core whose kernels a processor should run instead of those for `core`, by what else it can do; empty where they
// fit, or where nothing is known of them.
absl::string_view BetterBlasCore(absl::string_view core, bool has_avx2, bool has_avx512);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_BLAS_CORE_H_
