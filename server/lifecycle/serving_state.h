#ifndef TENSORD_SERVER_LIFECYCLE_SERVING_STATE_H_
#define TENSORD_SERVER_LIFECYCLE_SERVING_STATE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensord::server {

// starting → warming → ready → draining → stopped, as serving_states.def says. Moves are CallGate's alone.
enum class ServingState : uint8_t {
#define TENSORD_SERVING_STATE(enumerator, name, takes_calls, refusal) enumerator,
#include "server/lifecycle/serving_states.def"
#undef TENSORD_SERVING_STATE
};

struct ServingStateInfo {
  absl::string_view name;
  bool takes_calls = false;
  absl::string_view refusal;
};

inline constexpr ServingStateInfo kServingStates[] = {
#define TENSORD_SERVING_STATE(enumerator, name, takes_calls, refusal) {name, takes_calls, refusal},
#include "server/lifecycle/serving_states.def"
#undef TENSORD_SERVING_STATE
};

inline constexpr const ServingStateInfo& InfoOf(ServingState state) {
  return kServingStates[static_cast<size_t>(state)];
}

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_SERVING_STATE_H_
