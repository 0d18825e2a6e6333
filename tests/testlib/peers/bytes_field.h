#ifndef TENSORD_TESTS_TESTLIB_PEERS_BYTES_FIELD_H_
#define TENSORD_TESTS_TESTLIB_PEERS_BYTES_FIELD_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/rpc/wire/wire_bytes.h"

namespace tensord {

// A string, bytes or a message as a field of protobuf's wire format.
inline std::string BytesField(int field, absl::string_view content) {
  std::string bytes;
  server::AppendBytesField(field, content, &bytes);
  return bytes;
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_PEERS_BYTES_FIELD_H_
