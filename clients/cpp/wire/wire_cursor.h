#ifndef TENSORD_CLIENTS_CPP_WIRE_WIRE_CURSOR_H_
#define TENSORD_CLIENTS_CPP_WIRE_WIRE_CURSOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace tensord::client {

// Reads protobuf's wire format from the slices of a received message, without joining them first. Unlike protobuf's own
// streams it reads messages past 2 GiB. Thread-compatible. Every read answers false on truncated or malformed bytes,
// and the cursor must not be used after that.
class WireCursor {
 public:
  // A field's key. `number` is never 0.
  struct Tag {
    uint32_t number;
    uint32_t wire_type;
  };

  static constexpr uint32_t kVarint = 0;
  static constexpr uint32_t kFixed64 = 1;
  static constexpr uint32_t kLengthDelimited = 2;
  static constexpr uint32_t kFixed32 = 5;

  // None if gRPC cannot hand the message out (it could not be decompressed).
  static std::optional<WireCursor> Open(const grpc::ByteBuffer& message);

  // Bytes read so far, and of the whole message.
  uint64_t position() const { return position_; }
  uint64_t size() const { return size_; }

  bool ReadVarint(uint64_t* value);
  bool ReadTag(Tag* tag);
  // The length of a length-delimited field, checked against `end`, as the position after its last byte.
  bool ReadLength(uint64_t end, uint64_t* field_end);
  bool ReadBytes(void* target, uint64_t count);
  bool ReadString(uint64_t count, std::string* target);
  // Reads the part of the next `most` bytes that lies in one slice; it stays there as long as the cursor. False at the
  // end.
  bool ReadPiece(uint64_t most, absl::string_view* piece);
  bool Skip(uint64_t count);
  // Skips the value of a field that the reader does not know.
  bool SkipField(Tag tag, uint64_t end);

 private:
  explicit WireCursor(std::vector<grpc::Slice> slices);

  bool ReadByte(uint8_t* byte);

  std::vector<grpc::Slice> slices_;
  uint64_t size_ = 0;
  uint64_t position_ = 0;
  size_t slice_ = 0;
  size_t offset_in_slice_ = 0;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_WIRE_WIRE_CURSOR_H_
