#ifndef TENSORD_SERVER_CONFIG_JSON_FIELDS_H_
#define TENSORD_SERVER_CONFIG_JSON_FIELDS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

// Checks a text that protobuf has taken as JSON: refuses an object with the same field twice, in either spelling.
// Protobuf itself takes the last.
absl::Status CheckFieldsAreOnce(absl::string_view json);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_JSON_FIELDS_H_
