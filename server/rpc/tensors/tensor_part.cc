#include "server/rpc/tensors/tensor_part.h"

#include <string>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "proto/checksum/crc32c.h"
#include "proto/codec/known_fields.h"
#include "server/rpc/wire/parse_message.h"
#include "server/rpc/wire/shared_slice.h"
#include "server/rpc/wire/slice_reader.h"
#include "server/rpc/wire/wire_bytes.h"

namespace tensord::server {
namespace {

using Put = v1::PutTensorRequest;
using Get = v1::GetTensorResponse;

constexpr uint8_t kPart = Put::kChunkFieldNumber << 3 | 2;
constexpr uint8_t kOffset = Put::Chunk::kOffsetFieldNumber << 3;
constexpr uint8_t kCrc32c = Put::Chunk::kCrc32CFieldNumber << 3 | 5;
constexpr uint8_t kDataTag = Put::Chunk::kDataFieldNumber << 3 | 2;

}  // namespace

// A chunk as encoders write it, its data last. Anything else is left to protobuf.
bool TensorPart::ReadChunk() {
  SliceReader reader(slices_);
  uint8_t tag = 0;
  uint64_t offset = 0;
  int64_t length = 0;
  if (!reader.ReadByte(&tag) || tag != kPart || !reader.ReadLength(&length) || length != reader.remaining()) {
    return false;
  }
  if (!reader.ReadByte(&tag)) return false;
  if (tag == kOffset && (!reader.ReadVarint(&offset) || !reader.ReadByte(&tag))) return false;
  if (tag == kCrc32c && (!reader.ReadFixed32(&crc32c_) || !reader.ReadByte(&tag))) return false;
  if (tag != kDataTag || !reader.ReadLength(&size_) || size_ != reader.remaining()) return false;
  offset_ = static_cast<int64_t>(offset);
  return reader.ReadPieces(size_, &pieces_);
}

absl::Status TensorPart::Read(grpc::ByteBuffer* bytes) {
  pieces_.clear();
  slices_.clear();
  message_.Clear();
  crc32c_ = 0;
  if (bytes->Dump(&slices_).ok() && ReadChunk()) {
    bytes->Clear();
    return absl::OkStatus();
  }
  pieces_.clear();
  RETURN_IF_ERROR(ParseMessage(bytes, &message_));
  if (message_.has_header()) {
    if (message_.header().has_shared()) RETURN_IF_ERROR(codec::CheckKnownFields(message_.header().shared()));
    return codec::CheckKnownFields(message_.header());
  }
  if (!message_.has_chunk()) {
    return Refuse(Refusal::kMalformedMessage, "a message of an upload is neither a header nor a chunk");
  }
  const Put::Chunk& chunk = message_.chunk();
  offset_ = chunk.offset();
  crc32c_ = chunk.crc32c();
  size_ = static_cast<int64_t>(chunk.data().size());
  pieces_.emplace_back(chunk.data().data(), chunk.data().size());
  return codec::CheckKnownFields(chunk);
}

bool TensorPart::CopyTo(char* to) const {
  uint32_t crc = 0;
  for (const absl::string_view piece : pieces_) {
    crc = CopyWithCrc32c(crc, piece, to, size_);
    to += piece.size();
  }
  return crc == crc32c_;
}

grpc::ByteBuffer EncodeChunk(int64_t offset, absl::string_view data, const std::shared_ptr<const void>& owner) {
  std::string fields;
  if (offset != 0) AppendVarintField(Get::Chunk::kOffsetFieldNumber, static_cast<uint64_t>(offset), &fields);
  if (const uint32_t crc = Crc32c(data); crc != 0) AppendFixed32Field(Get::Chunk::kCrc32CFieldNumber, crc, &fields);
  const int64_t size = static_cast<int64_t>(data.size());
  std::string header;
  AppendLengthTag(Get::kChunkFieldNumber, static_cast<int64_t>(fields.size()) + LengthFieldSize(size), &header);
  header += fields;
  AppendLengthTag(Get::Chunk::kDataFieldNumber, size, &header);
  const grpc::Slice slices[] = {grpc::Slice(header), SharedSlice(data, owner)};
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace tensord::server
