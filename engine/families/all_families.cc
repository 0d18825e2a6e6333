#include "engine/families/all_families.h"

#include "engine/families/einsum/einsum_ops.h"
#include "engine/families/fft/fft_ops.h"
#include "engine/families/linalg/linalg_ops.h"
#include "engine/ops/core_ops.h"

namespace tensord {

absl::Span<const absl::Span<const OpDef>> AllFamilies() {
  static const absl::Span<const OpDef> families[] = {
      CoreOps(),
      EinsumOps(),
      FftOps(),
      LinalgOps(),
  };
  return families;
}

const OpRegistry& FamilyRegistry() {
  static const OpRegistry* const registry = new OpRegistry(AllFamilies());
  return *registry;
}

}  // namespace tensord
