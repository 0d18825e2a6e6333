#include "clients/cpp/tensor_transfer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/dtype.h"
#include "clients/cpp/error_detail.h"
#include "clients/cpp/wire_cursor.h"
#include "clients/cpp/wire_writer.h"
#include "grpcpp/completion_queue.h"
#include "proto/checksum/crc32c.h"

namespace tensord::client {
namespace {

using Chunk = v1::GetTensorResponse::Chunk;

// A call that sends and receives bytes. One step is under way at a time: what is started must be waited for.
class ByteStream {
 public:
  ByteStream(grpc::GenericStub& stub, grpc::ClientContext& context, const char* method)
      : call_(stub.PrepareCall(&context, method, &queue_)) {
    call_->StartCall(nullptr);
    Wait();
  }

  void StartWrite(const grpc::ByteBuffer& message) { call_->Write(message, nullptr); }
  void StartRead(grpc::ByteBuffer* message) { call_->Read(message, nullptr); }
  // False: the call is over.
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  void WritesDone() {
    call_->WritesDone(nullptr);
    Wait();
  }
  absl::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Wait();
    return ToAbslStatus(status);
  }

 private:
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

grpc::ByteBuffer ToBytes(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// What protobuf makes of a chunk, around the tensor's own memory.
grpc::ByteBuffer EncodeChunk(const HostTensor& tensor, size_t offset, size_t size) {
  v1::PutTensorRequest::Chunk fields;
  fields.set_offset(static_cast<int64_t>(offset));
  fields.set_crc32c(Crc32c({tensor.bytes() + offset, size}));
  std::string inside = fields.SerializeAsString();
  AppendLengthDelimitedTag(v1::PutTensorRequest::Chunk::kDataFieldNumber, &inside);
  AppendVarint(size, &inside);
  std::string head;
  AppendLengthDelimitedTag(v1::PutTensorRequest::kChunkFieldNumber, &head);
  AppendVarint(inside.size() + size, &head);
  const grpc::Slice slices[] = {grpc::Slice(head + inside), PayloadSlice(tensor, offset, size)};
  return grpc::ByteBuffer(slices, 2);
}

bool ParseBytes(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  std::optional<WireCursor> cursor = WireCursor::Open(bytes);
  std::string joined;
  return cursor.has_value() && cursor->ReadString(cursor->size(), &joined) && message->ParseFromString(joined);
}

absl::Status Malformed() { return absl::InternalError("the server's answer is no GetTensorResponse"); }

// A tensor whose chunks come one after the other.
class Gathering {
 public:
  absl::Status Begin(const v1::GetTensorResponse::Header& header) {
    dtype_ = static_cast<DType>(header.dtype());
    if (!IsKnownDType(header.dtype())) return Malformed();
    shape_.assign(header.shape().begin(), header.shape().end());
    order_ = header.order() == v1::MEMORY_ORDER_ROW_MAJOR ? MemoryOrder::kRowMajor : MemoryOrder::kColumnMajor;
    uint64_t size = static_cast<uint64_t>(SizeInBytes(dtype_));
    for (const int64_t dim : shape_) {
      if (dim < 0 || __builtin_mul_overflow(size, static_cast<uint64_t>(dim), &size)) return Malformed();
    }
    size_ = size;
    bytes_.reset(new (std::nothrow) char[size_], std::default_delete<char[]>());
    if (bytes_ == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for ", size_, " bytes"));
    return absl::OkStatus();
  }

  absl::Status Add(const grpc::ByteBuffer& message) {
    std::optional<WireCursor> cursor = WireCursor::Open(message);
    WireCursor::Tag tag;
    uint64_t end = 0;
    if (!cursor.has_value() || !cursor->ReadTag(&tag) || tag.number != v1::GetTensorResponse::kChunkFieldNumber ||
        tag.wire_type != WireCursor::kLengthDelimited || !cursor->ReadLength(cursor->size(), &end)) {
      return Malformed();
    }
    uint64_t offset = 0, data_bytes = 0;
    uint32_t crc = 0;
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
        is_read = is_read && data_bytes <= size_ - arrived_ && cursor->ReadBytes(bytes_.get() + arrived_, data_bytes);
      } else {
        is_read = is_read && cursor->SkipField(tag, end);
      }
      if (!is_read) return Malformed();
    }
    if (offset != arrived_) return Malformed();
    if (Crc32c({bytes_.get() + arrived_, data_bytes}) != crc) {
      return absl::DataLossError(absl::StrCat("the chunk at ", offset, " is not what its checksum says"));
    }
    arrived_ += data_bytes;
    return absl::OkStatus();
  }

  absl::StatusOr<HostTensor> Take() {
    if (arrived_ != size_) return Malformed();
    return HostTensor::FromBuffer(dtype_, std::move(shape_), order_, std::move(bytes_), size_);
  }

 private:
  DType dtype_ = DType::kF32;
  Shape shape_;
  MemoryOrder order_ = MemoryOrder::kColumnMajor;
  std::shared_ptr<char> bytes_;
  uint64_t size_ = 0;
  uint64_t arrived_ = 0;
};

}  // namespace

absl::Status SendTensor(grpc::GenericStub& stub, grpc::ClientContext& context, v1::PutTensorRequest::Header header,
                        const HostTensor& tensor) {
  header.set_dtype(ToWire(tensor.dtype()));
  header.mutable_shape()->Assign(tensor.shape().begin(), tensor.shape().end());
  header.set_order(ToWire(tensor.order()));
  v1::PutTensorRequest first;
  *first.mutable_header() = std::move(header);

  ByteStream stream(stub, context, "/tensord.v1.Compute/PutTensor");
  stream.StartWrite(ToBytes(first));
  bool goes_on = true;
  for (size_t at = 0; goes_on && at < tensor.size_bytes(); at += kChunkBytes) {
    // Its checksum is computed while the chunk before goes out.
    const grpc::ByteBuffer chunk = EncodeChunk(tensor, at, std::min(kChunkBytes, tensor.size_bytes() - at));
    goes_on = stream.Wait();
    if (goes_on) stream.StartWrite(chunk);
  }
  if (goes_on && stream.Wait()) stream.WritesDone();
  grpc::ByteBuffer response;
  stream.StartRead(&response);
  stream.Wait();
  return stream.Finish();
}

absl::StatusOr<HostTensor> ReceiveTensor(grpc::GenericStub& stub, grpc::ClientContext& context,
                                         const v1::GetTensorRequest& request) {
  ByteStream stream(stub, context, "/tensord.v1.Compute/GetTensor");
  stream.StartWrite(ToBytes(request));
  if (stream.Wait()) stream.WritesDone();
  Gathering gathering;
  absl::Status gathered;
  bool has_header = false;
  grpc::ByteBuffer next;
  stream.StartRead(&next);
  while (stream.Wait()) {
    // The next message comes while this one is gathered.
    grpc::ByteBuffer message;
    message.Swap(&next);
    stream.StartRead(&next);
    if (!gathered.ok()) continue;
    if (has_header) {
      gathered = gathering.Add(message);
    } else {
      v1::GetTensorResponse first;
      gathered = ParseBytes(message, &first) && first.has_header() ? gathering.Begin(first.header()) : Malformed();
      has_header = true;
    }
    if (!gathered.ok()) context.TryCancel();
  }
  const absl::Status ended = stream.Finish();
  if (!gathered.ok()) return gathered;
  if (!ended.ok()) return ended;
  if (!has_header) return Malformed();
  return gathering.Take();
}

}  // namespace tensord::client
