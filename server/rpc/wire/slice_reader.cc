#include "server/rpc/wire/slice_reader.h"

#include <algorithm>

namespace tensord::server {
namespace {

constexpr int kMaxVarintBytes = 10;

}  // namespace

SliceReader::SliceReader(absl::Span<const grpc::Slice> slices) : slices_(slices) {
  for (const grpc::Slice& slice : slices) size_ += static_cast<int64_t>(slice.size());
  Advance(0);
}

absl::string_view SliceReader::Rest() const {
  const grpc::Slice& slice = slices_[slice_];
  return {reinterpret_cast<const char*>(slice.begin()) + offset_, slice.size() - offset_};
}

void SliceReader::Advance(size_t count) {
  position_ += static_cast<int64_t>(count);
  offset_ += count;
  while (slice_ < slices_.size() && offset_ == slices_[slice_].size()) {
    ++slice_;
    offset_ = 0;
  }
}

bool SliceReader::ReadByte(uint8_t* byte) {
  if (remaining() == 0) return false;
  *byte = static_cast<uint8_t>(Rest()[0]);
  Advance(1);
  return true;
}

bool SliceReader::ReadVarint(uint64_t* value) {
  uint64_t result = 0;
  for (int i = 0; i < kMaxVarintBytes; ++i) {
    uint8_t byte = 0;
    if (!ReadByte(&byte)) return false;
    if (i == kMaxVarintBytes - 1 && byte > 1) return false;
    result |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    *value = result;
    return i == 0 || byte != 0;
  }
  return false;
}

bool SliceReader::ReadAnyVarint(uint64_t* value) {
  *value = 0;
  for (int i = 0; i < kMaxVarintBytes; ++i) {
    uint8_t byte = 0;
    if (!ReadByte(&byte)) return false;
    *value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) return true;
  }
  return false;
}

bool SliceReader::ReadAnyLength(int64_t* length) {
  uint64_t value = 0;
  if (!ReadAnyVarint(&value) || value > static_cast<uint64_t>(remaining())) return false;
  *length = static_cast<int64_t>(value);
  return true;
}

bool SliceReader::ReadLength(int64_t* length) {
  uint64_t value = 0;
  if (!ReadVarint(&value) || value > static_cast<uint64_t>(remaining())) return false;
  *length = static_cast<int64_t>(value);
  return true;
}

bool SliceReader::ReadFixed32(uint32_t* value) {
  uint32_t result = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    uint8_t byte = 0;
    if (!ReadByte(&byte)) return false;
    result |= static_cast<uint32_t>(byte) << shift;
  }
  *value = result;
  return true;
}

bool SliceReader::SkipVarint() {
  for (int i = 0; i < kMaxVarintBytes; ++i) {
    uint8_t byte = 0;
    if (!ReadByte(&byte)) return false;
    if (byte < 0x80) return true;
  }
  return false;
}

bool SliceReader::Skip(int64_t count) {
  if (count > remaining()) return false;
  while (count > 0) {
    const size_t taken = std::min(Rest().size(), static_cast<size_t>(count));
    Advance(taken);
    count -= static_cast<int64_t>(taken);
  }
  return true;
}

bool SliceReader::ReadPieces(int64_t count, std::vector<absl::string_view>* pieces) {
  if (count > remaining()) return false;
  while (count > 0) {
    const absl::string_view piece = Rest().substr(0, static_cast<size_t>(count));
    pieces->push_back(piece);
    Advance(piece.size());
    count -= static_cast<int64_t>(piece.size());
  }
  return true;
}

}  // namespace tensord::server
