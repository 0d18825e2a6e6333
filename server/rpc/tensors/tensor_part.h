#ifndef TENSORD_SERVER_RPC_TENSORS_TENSOR_PART_H_
#define TENSORD_SERVER_RPC_TENSORS_TENSOR_PART_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Most bytes of data in one message of PutTensor or GetTensor.
inline constexpr int64_t kMaxChunkBytes = int64_t{1} << 20;

// One message of a tensor's upload as it came in: a header, or a chunk whose data is copied from where it came in.
// Thread-compatible.
class TensorPart {
 public:
  TensorPart() = default;
  TensorPart(const TensorPart&) = delete;
  TensorPart& operator=(const TensorPart&) = delete;

  // Takes the place of the part before; the bytes are freed with it. Takes the same messages as protobuf.
  // MALFORMED_MESSAGE, also for a message without a part; UNSUPPORTED_REQUEST for a field that this build does not
  // know.
  absl::Status Read(grpc::ByteBuffer* bytes);

  // Returns null for a chunk.
  const v1::PutTensorRequest::Header* header() const { return message_.has_header() ? &message_.header() : nullptr; }
  int64_t offset() const { return offset_; }
  int64_t size() const { return size_; }
  // Copies the data, and tells whether it has its checksum.
  bool CopyTo(char* to) const;

 private:
  bool ReadChunk();

  std::vector<grpc::Slice> slices_;
  v1::PutTensorRequest message_;  // of a header, and of a chunk that no encoder makes so
  int64_t offset_ = 0;
  int64_t size_ = 0;
  uint32_t crc32c_ = 0;
  std::vector<absl::string_view> pieces_;  // of the data, in order
};

// Encodes a message of a tensor's download: the bytes that protobuf makes of a chunk, with a slice over `data` itself
// as its data. The buffer keeps `owner` alive.
grpc::ByteBuffer EncodeChunk(int64_t offset, absl::string_view data, const std::shared_ptr<const void>& owner);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_TENSORS_TENSOR_PART_H_
