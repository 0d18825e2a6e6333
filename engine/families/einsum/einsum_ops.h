#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_OPS_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_OPS_H_

#include "absl/types/span.h"
#include "engine/ir/op_def.h"

namespace tensord {

// Returns the family "einsum": the messages of tensord/einsum/v1.
absl::Span<const OpDef> EinsumOps();

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_OPS_H_
