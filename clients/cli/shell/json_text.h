#ifndef TENSORD_CLIENTS_CLI_SHELL_JSON_TEXT_H_
#define TENSORD_CLIENTS_CLI_SHELL_JSON_TEXT_H_

#include <string>

#include "google/protobuf/message.h"

namespace tensord::cli {

enum class JsonLayout { kIndented, kOneLine };

// Returns a message as JSON, with the field names of the .proto file and a line's end behind it. Unlike protobuf's own
// mapping, 64-bit integers are numbers as well; those beyond ±2^53, which readers of JSON round, are texts. Texts are
// also what JSON has no number for: "NaN", "Infinity" and "-Infinity". Fields that are not set are left out, enums are
// names, bytes base64, durations "1.5s", times RFC 3339, and what is no UTF-8 becomes U+FFFD.
std::string JsonText(const google::protobuf::Message& message, JsonLayout layout);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_JSON_TEXT_H_
