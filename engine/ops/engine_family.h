#ifndef TENSORD_ENGINE_OPS_ENGINE_FAMILY_H_
#define TENSORD_ENGINE_OPS_ENGINE_FAMILY_H_

#include "absl/strings/string_view.h"

namespace tensord {

// The family of ops that only passes make: no client can send them.
inline constexpr absl::string_view kEngineFamily = "engine";

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_ENGINE_FAMILY_H_
