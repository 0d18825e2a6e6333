#include "backends/cpu/family_kernels.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "backends/cpu/fft/kernels.h"
#include "backends/cpu/linalg/kernels.h"

namespace tensord::cpu {
namespace {

using Factories = absl::flat_hash_map<absl::string_view, MakeFamilyKernel*>;

// The tables of the families that are built in.
const Factories& BuiltIn() {
  static const Factories* const factories = [] {
    auto* all = new Factories();
    const std::initializer_list<absl::Span<const FamilyKernel>> tables = {FftKernels(), LinalgKernels()};
    for (absl::Span<const FamilyKernel> table : tables) {
      for (const FamilyKernel& kernel : table) all->emplace(kernel.op, kernel.make);
    }
    return all;
  }();
  return *factories;
}

}  // namespace

MakeFamilyKernel* FamilyFactoryOf(const OpDef& op) {
  const auto it = BuiltIn().find(op.name);
  return it == BuiltIn().end() ? nullptr : it->second;
}

absl::Status AuditFamilyKernels(absl::Span<const FamilyKernel> kernels, absl::Span<const OpDef> ops) {
  const auto wrong = [](auto... what) { return absl::InvalidArgumentError(absl::StrCat(what...)); };
  absl::flat_hash_set<absl::string_view> names;
  for (const FamilyKernel& kernel : kernels) {
    const auto op = std::find_if(ops.begin(), ops.end(), [&](const OpDef& def) { return def.name == kernel.op; });
    if (op == ops.end()) {
      return wrong("it has a CPU kernel of \"", kernel.op, "\", which is no op of its family: write OpDef::name");
    }
    if (op->expand.has()) return wrong("the op ", op->name, " is expanded, and its CPU kernel would never run");
    if (kernel.make == nullptr) return wrong("the CPU kernel of the op ", op->name, " has no function that makes it");
    if (!names.insert(kernel.op).second) return wrong("the op ", op->name, " has two CPU kernels");
  }
  for (const OpDef& op : ops) {
    if (!op.expand.has() && !names.contains(op.name)) {
      return wrong("the op ", op.name, " is not expanded, and no device of this server has a kernel of it");
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord::cpu
