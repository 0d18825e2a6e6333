#include "engine/base/random_id.h"

#include <sys/random.h>

#include <array>

#include "absl/strings/escaping.h"
#include "engine/base/refusal.h"

namespace tensord {

absl::StatusOr<std::string> NewRandomId() {
  std::array<char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Refuse(Refusal::kInternal, "the system gave no random bytes");
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

}  // namespace tensord
