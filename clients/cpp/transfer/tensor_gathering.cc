#include "clients/cpp/transfer/tensor_gathering.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/wire/wire_cursor.h"
#include "proto/checksum/crc32c.h"
#include "tensord/dtype.h"

namespace tensord::client {
namespace {

using Chunk = v1::GetTensorResponse::Chunk;

constexpr uint64_t kStepBytes = uint64_t{128} << 10;

}  // namespace

absl::Status TensorGathering::Malformed() { return absl::InternalError("the server's answer is no GetTensorResponse"); }

absl::Status TensorGathering::Begin(const v1::GetTensorResponse::Header& header) {
  const DType dtype = static_cast<DType>(header.dtype());
  if (!IsKnownDType(header.dtype())) return Malformed();
  Shape shape(header.shape().begin(), header.shape().end());
  const MemoryOrder order =
      header.order() == v1::MEMORY_ORDER_ROW_MAJOR ? MemoryOrder::kRowMajor : MemoryOrder::kColumnMajor;
  if (has_begun_) {
    const bool is_same = dtype == dtype_ && shape == shape_ && order == order_ && header.version() == version_;
    if (is_same) return absl::OkStatus();
    return absl::AbortedError("the tensor became another one while it was downloaded");
  }
  uint64_t size = static_cast<uint64_t>(SizeInBytes(dtype));
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(size, static_cast<uint64_t>(dim), &size)) return Malformed();
  }
  if (header.has_shared()) {
    if (space_.bytes == nullptr || size > space_.size_bytes) return Malformed();
    bytes_ = space_.bytes;
    arrived_ = size;
  } else {
    bytes_.reset(new (std::nothrow) char[size], std::default_delete<char[]>());
  }
  if (bytes_ == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for ", size, " bytes"));
  dtype_ = dtype;
  shape_ = std::move(shape);
  order_ = order;
  version_ = header.version();
  size_ = size;
  has_begun_ = true;
  return absl::OkStatus();
}

uint32_t TensorGathering::Copy(WireCursor* cursor, uint64_t size, absl::FunctionRef<void()> between) {
  const int64_t whole = static_cast<int64_t>(size);
  char* to = bytes_.get() + arrived_;
  uint32_t crc = 0;
  for (absl::string_view piece; size > 0; size -= piece.size(), to += piece.size()) {
    cursor->ReadPiece(std::min(size, kStepBytes), &piece);
    crc = CopyWithCrc32c(crc, piece, to, whole);
    between();
  }
  return crc;
}

absl::Status TensorGathering::Add(const grpc::ByteBuffer& message, absl::FunctionRef<void()> between) {
  std::optional<WireCursor> cursor = WireCursor::Open(message);
  WireCursor::Tag tag;
  uint64_t end = 0;
  if (!has_begun_ || !cursor.has_value() || !cursor->ReadTag(&tag) ||
      tag.number != v1::GetTensorResponse::kChunkFieldNumber || tag.wire_type != WireCursor::kLengthDelimited ||
      !cursor->ReadLength(cursor->size(), &end)) {
    return Malformed();
  }
  uint64_t offset = 0, data_bytes = 0;
  uint32_t crc = 0, crc_here = 0;
  while (cursor->position() < end) {
    bool is_read = cursor->ReadTag(&tag);
    if (is_read && tag.number == Chunk::kOffsetFieldNumber && tag.wire_type == WireCursor::kVarint) {
      is_read = cursor->ReadVarint(&offset);
    } else if (is_read && tag.number == Chunk::kCrc32CFieldNumber && tag.wire_type == WireCursor::kFixed32) {
      is_read = cursor->ReadBytes(&crc, sizeof(crc));
    } else if (is_read && tag.number == Chunk::kDataFieldNumber && tag.wire_type == WireCursor::kLengthDelimited) {
      uint64_t data_end = 0;
      is_read = cursor->ReadLength(end, &data_end);
      data_bytes = data_end - cursor->position();
      is_read = is_read && data_bytes <= size_ - arrived_;
      if (is_read) crc_here = Copy(&*cursor, data_bytes, between);
    } else {
      is_read = is_read && cursor->SkipField(tag, end);
    }
    if (!is_read) return Malformed();
  }
  // There may be any number of chunks that bring nothing.
  if (offset != arrived_ || data_bytes == 0) return Malformed();
  if (crc_here != crc) {
    return absl::DataLossError(absl::StrCat("the chunk at ", offset, " is not what its checksum says"));
  }
  arrived_ += data_bytes;
  return absl::OkStatus();
}

absl::StatusOr<HostTensor> TensorGathering::Take() {
  if (!is_complete()) return Malformed();
  return HostTensor::FromBuffer(dtype_, std::move(shape_), order_, std::move(bytes_), size_);
}

}  // namespace tensord::client
