#include "server/rpc/wire/wire_bytes.h"

namespace tensord::server {
namespace {

constexpr uint8_t Fixed32Tag(int field) { return static_cast<uint8_t>(field << 3 | 5); }

void AppendTag(uint8_t tag, std::string* to) { to->push_back(static_cast<char>(tag)); }

}  // namespace

void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>((value & 0x7F) | 0x80));
  to->push_back(static_cast<char>(value));
}

void AppendVarintField(int field, uint64_t value, std::string* to) {
  AppendTag(VarintTag(field), to);
  AppendVarint(value, to);
}

void AppendFixed32Field(int field, uint32_t value, std::string* to) {
  AppendTag(Fixed32Tag(field), to);
  for (int shift = 0; shift < 32; shift += 8) to->push_back(static_cast<char>(value >> shift));
}

void AppendLengthTag(int field, int64_t length, std::string* to) {
  AppendTag(LengthTag(field), to);
  AppendVarint(static_cast<uint64_t>(length), to);
}

void AppendBytesField(int field, absl::string_view content, std::string* to) {
  AppendLengthTag(field, static_cast<int64_t>(content.size()), to);
  to->append(content.data(), content.size());
}

}  // namespace tensord::server
