#ifndef TENSORD_SERVER_RPC_WIRE_SLICE_READER_H_
#define TENSORD_SERVER_RPC_WIRE_SLICE_READER_H_

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord::server {

// Reads protobuf's wire format from the slices of a message without joining them: 64 MiB arrive in more than a
// thousand. A copy of a reader remembers a place. The slices outlive it and the pieces that it hands out.
// Thread-compatible. Every read returns false at the end of the bytes, or for bytes of another form; the reader is then
// of no more use.
class SliceReader {
 public:
  explicit SliceReader(absl::Span<const grpc::Slice> slices);

  int64_t position() const { return position_; }
  int64_t remaining() const { return size_ - position_; }

  bool ReadByte(uint8_t* byte);
  // Reads a varint as encoders write it, without bytes that could be left out.
  bool ReadVarint(uint64_t* value);
  // Reads a length that fits into the remaining bytes.
  bool ReadLength(int64_t* length);
  // Little-endian.
  bool ReadFixed32(uint32_t* value);
  // Reads any varint, of up to ten bytes; bits beyond 64 are left out.
  bool ReadAnyVarint(uint64_t* value);
  bool SkipVarint();
  // Reads a length as ReadLength does, however it is written.
  bool ReadAnyLength(int64_t* length);
  bool Skip(int64_t count);
  // The next bytes as they lie there. Appends no empty pieces.
  bool ReadPieces(int64_t count, std::vector<absl::string_view>* pieces);

 private:
  // Returns the rest of the current slice; not empty while anything remains.
  absl::string_view Rest() const;
  void Advance(size_t count);

  absl::Span<const grpc::Slice> slices_;
  int64_t size_ = 0;
  int64_t position_ = 0;
  size_t slice_ = 0;
  size_t offset_ = 0;  // in the slice
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_SLICE_READER_H_
