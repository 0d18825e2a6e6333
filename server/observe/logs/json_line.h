#ifndef TENSORD_SERVER_OBSERVE_LOGS_JSON_LINE_H_
#define TENSORD_SERVER_OBSERVE_LOGS_JSON_LINE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

// One JSON object on one line, built field by field. Text may hold any bytes: characters that JSON cannot hold become
// an escape, and bytes that are no UTF-8 become U+FFFD. Thread-compatible.
class JsonLine {
 public:
  JsonLine& Add(absl::string_view key, absl::string_view text);
  JsonLine& Add(absl::string_view key, int64_t number);

  // Returns the object, closed. The line cannot be added to afterwards.
  std::string Take() &&;

 private:
  void AddKey(absl::string_view key);

  std::string text_ = "{";
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_LOGS_JSON_LINE_H_
