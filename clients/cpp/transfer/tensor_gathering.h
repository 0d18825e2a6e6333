#ifndef TENSORD_CLIENTS_CPP_TRANSFER_TENSOR_GATHERING_H_
#define TENSORD_CLIENTS_CPP_TRANSFER_TENSOR_GATHERING_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/wire/wire_cursor.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/host_tensor.h"
#include "tensord/shared_memory.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

// A tensor whose chunks come one after the other, in one call of GetTensor or in several. Each call begins with the
// header and goes on at the byte at which the one before broke off. Thread-compatible. INTERNAL for bytes that are no
// answer of a server.
class TensorGathering {
 public:
  // `space`: in shared memory, where all of it may be instead of in chunks.
  explicit TensorGathering(ResultSpace space = {}) : space_(std::move(space)) {}

  // ABORTED where it is not the header of the calls before; the tensor is another one then.
  absl::Status Begin(const v1::GetTensorResponse::Header& header);
  // Each byte is copied once, out of gRPC's buffers. `between` is called after each of the steps that this takes.
  // DATA_LOSS if the checksum does not match: the chunk counts as not arrived.
  absl::Status Add(const grpc::ByteBuffer& message, absl::FunctionRef<void()> between);
  // Returns the number of bytes that are there.
  uint64_t arrived() const { return arrived_; }
  // Returns the size of all of it, once it has begun.
  uint64_t size() const { return size_; }
  bool is_complete() const { return has_begun_ && arrived_ == size_; }
  // Once all are.
  absl::StatusOr<HostTensor> Take();

  static absl::Status Malformed();

 private:
  // The next bytes go where they belong. Their checksum.
  uint32_t Copy(WireCursor* cursor, uint64_t size, absl::FunctionRef<void()> between);

  const ResultSpace space_;
  bool has_begun_ = false;
  DType dtype_ = DType::kF32;
  Shape shape_;
  MemoryOrder order_ = MemoryOrder::kColumnMajor;
  uint64_t version_ = 0;
  std::shared_ptr<char> bytes_;
  uint64_t size_ = 0;
  uint64_t arrived_ = 0;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_TRANSFER_TENSOR_GATHERING_H_
