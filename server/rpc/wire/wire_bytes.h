#ifndef TENSORD_SERVER_RPC_WIRE_WIRE_BYTES_H_
#define TENSORD_SERVER_RPC_WIRE_WIRE_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

// Protobuf's wire format by hand, for bytes that the generated classes cannot write: payloads that are not copied, and
// messages whose classes Debian's gRPC does not ship. As in proto3, the caller leaves out fields with their default
// value.

constexpr int64_t VarintSize(uint64_t value) {
  int64_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

// Returns the size of a field numbered up to 15, whose tag is one byte.
constexpr int64_t LengthFieldSize(int64_t length) { return 1 + VarintSize(static_cast<uint64_t>(length)) + length; }

// The tags of those.
constexpr uint8_t VarintTag(int field) { return static_cast<uint8_t>(field << 3); }
constexpr uint8_t LengthTag(int field) { return static_cast<uint8_t>(field << 3 | 2); }

void AppendVarint(uint64_t value, std::string* to);
// A field of an integer or an enum.
void AppendVarintField(int field, uint64_t value, std::string* to);
void AppendFixed32Field(int field, uint32_t value, std::string* to);
// Tag and length of a string, bytes or message field; its content must follow.
void AppendLengthTag(int field, int64_t length, std::string* to);
void AppendBytesField(int field, absl::string_view content, std::string* to);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_WIRE_BYTES_H_
