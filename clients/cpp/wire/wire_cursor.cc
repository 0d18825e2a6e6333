#include "clients/cpp/wire/wire_cursor.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tensord::client {

std::optional<WireCursor> WireCursor::Open(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Valid() || !message.Dump(&slices).ok()) return std::nullopt;
  return WireCursor(std::move(slices));
}

WireCursor::WireCursor(std::vector<grpc::Slice> slices) : slices_(std::move(slices)) {
  for (const grpc::Slice& slice : slices_) size_ += slice.size();
}

bool WireCursor::ReadByte(uint8_t* byte) { return ReadBytes(byte, 1); }

bool WireCursor::ReadVarint(uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t byte;
    if (!ReadByte(&byte)) return false;
    result |= static_cast<uint64_t>(byte & 0x7fu) << shift;
    if ((byte & 0x80u) == 0) {
      *value = result;
      return true;
    }
  }
  return false;
}

bool WireCursor::ReadTag(Tag* tag) {
  uint64_t key;
  if (!ReadVarint(&key) || key > UINT32_MAX) return false;
  *tag = {.number = static_cast<uint32_t>(key >> 3), .wire_type = static_cast<uint32_t>(key & 7u)};
  return tag->number != 0;
}

bool WireCursor::ReadLength(uint64_t end, uint64_t* field_end) {
  uint64_t length;
  if (!ReadVarint(&length) || position_ > end || length > end - position_) return false;
  *field_end = position_ + length;
  return true;
}

bool WireCursor::ReadBytes(void* target, uint64_t count) {
  if (count > size_ - position_) return false;
  char* out = static_cast<char*>(target);
  for (absl::string_view piece; count > 0; count -= piece.size()) {
    ReadPiece(count, &piece);
    if (out == nullptr) continue;
    std::memcpy(out, piece.data(), piece.size());
    out += piece.size();
  }
  return true;
}

bool WireCursor::ReadPiece(uint64_t most, absl::string_view* piece) {
  if (position_ == size_) return false;
  while (offset_in_slice_ == slices_[slice_].size()) {
    ++slice_;
    offset_in_slice_ = 0;
  }
  const grpc::Slice& slice = slices_[slice_];
  const size_t taken = static_cast<size_t>(std::min<uint64_t>(most, slice.size() - offset_in_slice_));
  *piece = {reinterpret_cast<const char*>(slice.begin()) + offset_in_slice_, taken};
  position_ += taken;
  offset_in_slice_ += taken;
  return true;
}

bool WireCursor::ReadString(uint64_t count, std::string* target) {
  if (count > size_ - position_) return false;
  target->resize(static_cast<size_t>(count));
  return ReadBytes(target->data(), count);
}

bool WireCursor::Skip(uint64_t count) { return ReadBytes(nullptr, count); }

bool WireCursor::SkipField(Tag tag, uint64_t end) {
  uint64_t ignored;
  switch (tag.wire_type) {
    case kVarint:
      return ReadVarint(&ignored);
    case kFixed64:
      return Skip(8);
    case kFixed32:
      return Skip(4);
    case kLengthDelimited:
      return ReadLength(end, &ignored) && Skip(ignored - position_);
    default:
      // Groups: proto3 has none.
      return false;
  }
}

}  // namespace tensord::client
