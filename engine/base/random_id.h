#ifndef TENSORD_ENGINE_BASE_RANDOM_ID_H_
#define TENSORD_ENGINE_BASE_RANDOM_ID_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensord {

// Returns 128 random bits of the kernel, in hexadecimal: an id that nobody can guess. INTERNAL if the system gives
// none.
absl::StatusOr<std::string> NewRandomId();

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_RANDOM_ID_H_
