#include "backends/cpu/machine/blas.h"

#include <cblas.h>
#include <hwy/targets.h>
#include <unistd.h>
#if HWY_ARCH_X86
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

// Ends OpenBLAS's threads, as OpenBLAS itself does before the process forks. In no header, and not in every build of
// it.
extern "C" int blas_thread_shutdown_() __attribute__((weak));

namespace tensord::cpu {
namespace {

// The cores of OpenBLAS 0.3's dynamic builds that know nothing of AVX2.
constexpr absl::string_view kCoresWithoutAvx2[] = {"Katmai",     "Coppermine",   "Northwood", "Prescott",   "Banias",
                                                   "Atom",       "Core2",        "Penryn",    "Dunnington", "Nehalem",
                                                   "Opteron",    "Opteron_SSE3", "Barcelona", "Bobcat",     "Bulldozer",
                                                   "Piledriver", "Sandybridge",  "Nano"};

}  // namespace

int64_t MachineCores() {
  static const int64_t cores = std::max<int64_t>(1, sysconf(_SC_NPROCESSORS_CONF));
  return cores;
}

void UseSerialBlas() {
  static const bool is_done = [] {
    openblas_set_num_threads(1);
    // It has started its threads when it was loaded. To be asked for one thread does not end them.
    if (blas_thread_shutdown_ != nullptr) blas_thread_shutdown_();
    return true;
  }();
  static_cast<void>(is_done);
}

bool BlasRoundsByAddress(absl::string_view core) {
  return std::any_of(std::begin(kCoresWithoutAvx2), std::end(kCoresWithoutAvx2),
                     [core](absl::string_view old) { return absl::EqualsIgnoreCase(core, old); });
}

bool BlasRoundsByAddress() {
#if HWY_ARCH_X86
  static const bool does = BlasRoundsByAddress(openblas_get_corename());
  return does;
#else
  return false;
#endif
}

absl::string_view BetterBlasCore(absl::string_view core, bool has_avx2, bool has_avx512) {
  // The kernels that round by address are the ones that AVX2 leaves behind.
  if (!BlasRoundsByAddress(core) || !has_avx2) return "";
  return has_avx512 ? "SkylakeX" : "Haswell";
}

ProcessorFeatures FeaturesOfThisProcessor() {
  ProcessorFeatures features;
#if HWY_ARCH_X86
  constexpr unsigned kExtendedFeatures = 0x80000001, k3dNow = 1u << 31;  // in edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  features.amd_3dnow = __get_cpuid(kExtendedFeatures, &a, &b, &c, &d) != 0 && (d & k3dNow) != 0;
  features.ssse3 = __builtin_cpu_supports("ssse3") != 0;
  features.sse4_1 = __builtin_cpu_supports("sse4.1") != 0;
  features.sse4_2 = __builtin_cpu_supports("sse4.2") != 0;
  features.sse4a = __builtin_cpu_supports("sse4a") != 0;
  features.avx = __builtin_cpu_supports("avx") != 0;
  features.fma4 = __builtin_cpu_supports("fma4") != 0;
  features.avx2_fma = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  features.avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                    __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#endif
  return features;
}

absl::string_view MissingForBlasCore(absl::string_view core, const ProcessorFeatures& features) {
  const struct {
    absl::string_view core;
    bool has;
    absl::string_view needs;
  } cores[] = {
      {"Core2", features.ssse3, "SSSE3"},         {"Atom", features.ssse3, "SSSE3"},
      {"Nano", features.ssse3, "SSSE3"},          {"Bobcat", features.ssse3, "SSSE3"},
      {"Penryn", features.sse4_1, "SSE4.1"},      {"Dunnington", features.sse4_1, "SSE4.1"},
      {"Nehalem", features.sse4_2, "SSE4.2"},     {"Barcelona", features.sse4a, "SSE4a"},
      {"Opteron", features.amd_3dnow, "3DNow!"},  {"Opteron_SSE3", features.amd_3dnow, "3DNow!"},
      {"Sandybridge", features.avx, "AVX"},       {"Bulldozer", features.fma4, "FMA4"},
      {"Piledriver", features.fma4, "FMA4"},      {"Steamroller", features.fma4, "FMA4"},
      {"Excavator", features.fma4, "FMA4"},       {"Haswell", features.avx2_fma, "AVX2"},
      {"Zen", features.avx2_fma, "AVX2"},         {"SkylakeX", features.avx512, "AVX-512"},
      {"Cooperlake", features.avx512, "AVX-512"}, {"SapphireRapids", features.avx512, "AVX-512"},
  };
  for (const auto& known : cores) {
    if (absl::EqualsIgnoreCase(core, known.core)) return known.has ? "" : known.needs;
  }
  return "";
}

absl::Status CheckBlasCore() {
#if HWY_ARCH_X86
  const ProcessorFeatures features = FeaturesOfThisProcessor();
  const char* const core = openblas_get_corename();
  const absl::string_view missing = MissingForBlasCore(core, features);
  if (!missing.empty()) {
    const absl::string_view fits = features.avx512 ? "SkylakeX" : features.avx2_fma ? "Haswell" : "Prescott";
    return absl::InvalidArgumentError(absl::StrCat("OpenBLAS would run its kernels for ", core, ", which need ",
                                                   missing,
                                                   ", and this processor has none: unset OPENBLAS_CORETYPE, or set it "
                                                   "to ",
                                                   fits));
  }
#endif
  return absl::OkStatus();
}

std::optional<OutdatedBlasCore> FindOutdatedBlasCore() {
#if HWY_ARCH_X86
  const auto targets = static_cast<int64_t>(hwy::SupportedTargets());
  const char* const core = openblas_get_corename();
  const absl::string_view better = BetterBlasCore(core, (targets & HWY_AVX2) != 0, (targets & HWY_AVX3) != 0);
  if (!better.empty()) return OutdatedBlasCore{.core = core, .better = std::string(better)};
#endif
  return std::nullopt;
}

absl::string_view BlasCoreWithin(absl::string_view core, CpuIsa isa) {
  const bool sse4 = isa >= CpuIsa::kSse4, avx2 = isa >= CpuIsa::kAvx2;
  const ProcessorFeatures features = {
      .ssse3 = sse4, .sse4_1 = sse4, .sse4_2 = sse4, .avx = avx2, .avx2_fma = avx2, .avx512 = isa >= CpuIsa::kAvx512};
  if (MissingForBlasCore(core, features).empty()) return "";
  return avx2 ? "Haswell" : sse4 ? "Nehalem" : "Prescott";
}

std::string BlasCoreWithin(CpuIsa isa) {
#if HWY_ARCH_X86
  return std::string(BlasCoreWithin(openblas_get_corename(), isa));
#else
  return "";
#endif
}

absl::string_view FittingBlasCore(absl::string_view core, const ProcessorFeatures& features,
                                  std::optional<CpuIsa> isa) {
  const absl::string_view better = BetterBlasCore(core, features.avx2_fma, features.avx512);
  absl::string_view fitting = better.empty() ? core : better;
  if (isa.has_value()) {
    if (const absl::string_view within = BlasCoreWithin(fitting, *isa); !within.empty()) fitting = within;
  }
  return absl::EqualsIgnoreCase(fitting, core) ? "" : fitting;
}

std::string FittingBlasCore(std::optional<CpuIsa> isa) {
#if HWY_ARCH_X86
  const absl::string_view core = openblas_get_corename();
  const ProcessorFeatures features = FeaturesOfThisProcessor();
  return std::string(FittingBlasCore(core, features, isa));
#else
  return "";
#endif
}

void BeginAgainWithBlasCore(const std::string& core, char** argv) {
  constexpr char kVariable[] = "OPENBLAS_CORETYPE";
  if (core.empty() || std::getenv(kVariable) != nullptr) return;
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return;
  setenv(kVariable, core.c_str(), 1);
  execv(program.c_str(), argv);
}

}  // namespace tensord::cpu
