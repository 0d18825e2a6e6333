#ifndef TENSORD_ENGINE_FAMILIES_ALL_FAMILIES_H_
#define TENSORD_ENGINE_FAMILIES_ALL_FAMILIES_H_

#include "absl/types/span.h"
#include "engine/ir/op_def.h"
#include "engine/ir/op_registry.h"

namespace tensord {

// Returns the ops of every family that is built in, the core vocabulary first.
absl::Span<const absl::Span<const OpDef>> AllFamilies();

// Their registry.
const OpRegistry& FamilyRegistry();

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_ALL_FAMILIES_H_
