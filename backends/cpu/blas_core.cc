#include "backends/cpu/blas_core.h"

#include <cblas.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"

namespace tensord::cpu {
namespace {

// Those of OpenBLAS 0.3's dynamic builds that know nothing of AVX2.
constexpr absl::string_view kCoresWithoutAvx2[] = {"Katmai",     "Coppermine",   "Northwood", "Prescott",   "Banias",
                                                   "Atom",       "Core2",        "Penryn",    "Dunnington", "Nehalem",
                                                   "Opteron",    "Opteron_SSE3", "Barcelona", "Bobcat",     "Bulldozer",
                                                   "Piledriver", "Sandybridge",  "Nano"};

}  // namespace

absl::string_view BetterBlasCore(absl::string_view core, bool has_avx2, bool has_avx512) {
  const bool is_old = std::any_of(std::begin(kCoresWithoutAvx2), std::end(kCoresWithoutAvx2),
                                  [core](absl::string_view old) { return absl::EqualsIgnoreCase(core, old); });
  if (!is_old || !has_avx2) return "";
  return has_avx512 ? "SkylakeX" : "Haswell";
}

std::optional<OutdatedBlasCore> FindOutdatedBlasCore() {
#ifdef HWY_ARCH_X86
  const auto targets = static_cast<int64_t>(hwy::SupportedTargets());
  const char* const core = openblas_get_corename();
  const absl::string_view better = BetterBlasCore(core, (targets & HWY_AVX2) != 0, (targets & HWY_AVX3) != 0);
  if (!better.empty()) return OutdatedBlasCore{.core = core, .better = std::string(better)};
#endif
  return std::nullopt;
}

}  // namespace tensord::cpu
