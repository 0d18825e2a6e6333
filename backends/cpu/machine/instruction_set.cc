#include "backends/cpu/machine/instruction_set.h"

#include <hwy/targets.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"

namespace tensord {
namespace {

constexpr absl::string_view kAuto = "auto";

// Highway's name for the best target of a set; of two targets the lower bit is the better one.
struct Known {
  CpuIsa isa;
  absl::string_view name;
  int64_t target;
};
constexpr Known kKnown[] = {
    {CpuIsa::kBaseline, "baseline", HWY_STATIC_TARGET},
    {CpuIsa::kSse4, "sse4", HWY_SSE4},
    {CpuIsa::kAvx2, "avx2", HWY_AVX2},
    {CpuIsa::kAvx512, "avx512", HWY_AVX3},
    {CpuIsa::kAvx512Bf16, "avx512_bf16", HWY_AVX3},  // Highway has no target between
};

int64_t MachineTargets() {
  // Highway tells the processor's sets until something else is set, hence once and first.
  static const int64_t targets = static_cast<int64_t>(hwy::SupportedTargets());
  return targets;
}

// False if UseCpuIsa has left BF16 out, though Highway's target is there.
std::atomic<bool> is_bf16_in_use{true};

bool MachineHas(const Known& known) {
  if (known.isa == CpuIsa::kBaseline) return true;
  if ((MachineTargets() & known.target) == 0) return false;
#if HWY_ARCH_X86
  return known.isa != CpuIsa::kAvx512Bf16 || __builtin_cpu_supports("avx512bf16");
#else
  return known.isa != CpuIsa::kAvx512Bf16;
#endif
}

const Known* Find(absl::string_view name) {
  for (const Known& known : kKnown) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

}  // namespace

absl::string_view Name(CpuIsa isa) { return kKnown[static_cast<size_t>(isa)].name; }

std::vector<CpuIsa> MachineCpuIsas() {
  std::vector<CpuIsa> isas;
  for (const Known& known : kKnown) {
    if (MachineHas(known)) isas.push_back(known.isa);
  }
  return isas;
}

absl::Status CheckCpuIsa(absl::string_view name, absl::Span<const CpuIsa> available) {
  const Known* const known = Find(name);
  std::vector<absl::string_view> names = {kAuto};
  for (const CpuIsa isa : available) names.push_back(Name(isa));
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(known == nullptr ? absl::StrCat("there is no instruction set \"", name, "\"")
                                    : absl::StrCat("this processor does not have the instruction set ", name),
                   ": name one of ", absl::StrJoin(names, ", ")));
}

absl::Status UseCpuIsa(absl::string_view name) {
  RETURN_IF_ERROR(CheckCpuIsa(name));
  const Known* const known = Find(name);
  // Not by DisableTargets: the next one who asks for the targets would choose among all again. `auto` is set too: where
  // nothing is, Highway asks the processor each time, which takes tens of microseconds in a virtual machine.
  hwy::SetSupportedTargetsForTest(known == nullptr ? MachineTargets() : MachineTargets() & ~(known->target - 1));
  is_bf16_in_use = known == nullptr || known->isa == CpuIsa::kAvx512Bf16;
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return absl::OkStatus();
}

CpuIsa CpuIsaInUse() {
  const int64_t targets = static_cast<int64_t>(hwy::SupportedTargets());
  CpuIsa best = CpuIsa::kBaseline;
  for (const Known& known : kKnown) {
    const bool is_left_out = known.isa == CpuIsa::kAvx512Bf16 && !is_bf16_in_use;
    if ((targets & known.target) != 0 && MachineHas(known) && !is_left_out) best = known.isa;
  }
  return best;
}

}  // namespace tensord
