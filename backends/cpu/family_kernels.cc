#include "backends/cpu/family_kernels.h"

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "backends/cpu/fft_kernels.h"
#include "backends/cpu/linalg_kernels.h"

namespace tensord::cpu {
namespace {

using Factories = absl::flat_hash_map<absl::string_view, MakeKernel*>;

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

MakeKernel* FamilyFactoryOf(const OpDef& op) {
  const auto it = BuiltIn().find(op.name);
  return it == BuiltIn().end() ? nullptr : it->second;
}

}  // namespace tensord::cpu
