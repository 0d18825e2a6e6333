#ifndef TENSORD_PROTO_COMMAND_LINE_SIZE_H_
#define TENSORD_PROTO_COMMAND_LINE_SIZE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tensord::wire {

// Returns a whole number with or without a unit: "2147483648", "2Gi", "2GiB", "2G". k, M, G and T are powers of 1000,
// Ki, Mi, Gi and Ti of 1024; K is k, and a B behind the unit has no meaning. None if the text is no such number from 0
// on, or the number does not fit.
std::optional<int64_t> ParseSize(absl::string_view text);

}  // namespace tensord::wire

#endif  // TENSORD_PROTO_COMMAND_LINE_SIZE_H_
