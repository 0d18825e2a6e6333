#ifndef TENSORD_ENGINE_IR_NAMES_H_
#define TENSORD_ENGINE_IR_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord {

// Checks a name. NAME_INVALID if it is longer than `max_bytes`, is not UTF-8, or holds a control character; with
// `reference`, for inputs and nodes, also if it is empty or holds ':'.
absl::Status CheckName(absl::string_view name, int64_t max_bytes, bool reference);

// Returns the name of the node that decides one more size in the place of a client's node, which may decide several:
// "y", "y:2", "y:3". No client's node has a name like the further ones.
std::string SizeDeciderName(absl::string_view node, size_t earlier);

// Returns the client's node: the name before the ':'.
absl::string_view WrittenName(absl::string_view name);

// Returns the name itself where it is short UTF-8 without control characters, otherwise escaped and shortened. For
// errors.
std::string PrintableName(absl::string_view name);

// Returns the message itself where it is UTF-8, otherwise escaped.
std::string PrintableMessage(absl::string_view message);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_NAMES_H_
