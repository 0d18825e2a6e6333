#include "clients/cpp/wire/wire_writer.h"

#include <memory>

#include "clients/cpp/wire/wire_cursor.h"

namespace tensord::client {

uint64_t VarintSize(uint64_t value) {
  uint64_t size = 1;
  for (; value >= 0x80u; value >>= 7) ++size;
  return size;
}

void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80u) {
    out->push_back(static_cast<char>(value | 0x80u));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void AppendLengthDelimitedTag(int field_number, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field_number) << 3 | WireCursor::kLengthDelimited, out);
}

grpc::Slice PayloadSlice(const HostTensor& tensor, size_t offset, size_t size) {
  auto* owner = new std::shared_ptr<const char>(tensor.buffer());
  return grpc::Slice(
      const_cast<char*>(tensor.bytes() + offset), size,
      [](void* held) { delete static_cast<std::shared_ptr<const char>*>(held); }, owner);
}

}  // namespace tensord::client
