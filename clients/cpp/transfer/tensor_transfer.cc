#include "clients/cpp/transfer/tensor_transfer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "clients/cpp/connection/byte_stream.h"
#include "clients/cpp/wire/wire_cursor.h"
#include "clients/cpp/wire/wire_writer.h"
#include "proto/checksum/crc32c.h"
#include "tensord/dtype.h"

namespace tensord::client {
namespace {

// About the capacity of a socket.
constexpr size_t kTurnBytes = size_t{256} << 10;

// In turns with the stream.
uint32_t Crc32cOf(absl::string_view bytes, ByteStream& stream) {
  uint32_t crc = 0;
  for (size_t at = 0; at < bytes.size(); at += kTurnBytes) {
    crc = ExtendCrc32c(crc, bytes.substr(at, kTurnBytes));
    stream.Turn();
  }
  return crc;
}

grpc::ByteBuffer ToBytes(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// Encodes a chunk as protobuf does, around the tensor's own memory.
grpc::ByteBuffer EncodeChunk(const HostTensor& tensor, size_t offset, size_t size, uint32_t crc) {
  v1::PutTensorRequest::Chunk fields;
  fields.set_offset(static_cast<int64_t>(offset));
  fields.set_crc32c(crc);
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

}  // namespace

absl::Status AnswerLost() { return absl::UnavailableError("the connection broke, and the answer was lost with it"); }

SentTensor SendTensor(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context,
                      v1::PutTensorRequest::Header header, const HostTensor& tensor, size_t begin, size_t end) {
  header.set_dtype(ToWire(tensor.dtype()));
  header.mutable_shape()->Assign(tensor.shape().begin(), tensor.shape().end());
  header.set_order(ToWire(tensor.order()));
  v1::PutTensorRequest first;
  *first.mutable_header() = std::move(header);

  ByteStream stream(stub, std::move(context), "/tensord.v1.Compute/PutTensor");
  stream.StartWrite(ToBytes(first));
  bool goes_on = true;
  for (size_t at = begin; goes_on && at < end; at += kChunkBytes) {
    // Its checksum is computed while the chunk before goes out.
    const size_t size = std::min(kChunkBytes, end - at);
    const grpc::ByteBuffer chunk = EncodeChunk(tensor, at, size, Crc32cOf({tensor.bytes() + at, size}, stream));
    goes_on = stream.Wait();
    if (goes_on) stream.StartWrite(chunk);
  }
  SentTensor sent;
  sent.is_sent = goes_on && stream.Wait();
  if (sent.is_sent) stream.WritesDone();
  stream.StartRead();
  const bool is_answered = stream.Wait();
  sent.status = stream.Finish();
  sent.is_late = stream.is_abandoned();
  v1::PutTensorResponse response;
  if (!sent.status.ok()) return sent;
  if (!is_answered) {
    sent.status = AnswerLost();
    return sent;
  }
  if (!ParseBytes(stream.TakeMessage(), &response) || response.byte_count() < 0) {
    sent.status = absl::InternalError("the server's answer is no PutTensorResponse");
    return sent;
  }
  sent.arrived = static_cast<size_t>(response.byte_count());
  return sent;
}

absl::Status ReceiveTensor(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context,
                           const v1::GetTensorRequest& request, TensorGathering* gathering) {
  ByteStream stream(stub, std::move(context), "/tensord.v1.Compute/GetTensor");
  stream.StartWrite(ToBytes(request));
  if (stream.Wait()) stream.WritesDone();
  absl::Status gathered;
  bool has_header = false;
  stream.StartRead();
  while (stream.Wait()) {
    // The next message comes while this one is gathered.
    const grpc::ByteBuffer message = stream.TakeMessage();
    stream.StartRead();
    if (!gathered.ok()) continue;
    if (has_header) {
      gathered = gathering->Add(message, [&stream] { stream.Turn(); });
    } else {
      v1::GetTensorResponse first;
      const bool is_header = ParseBytes(message, &first) && first.has_header();
      gathered = is_header ? gathering->Begin(first.header()) : TensorGathering::Malformed();
      has_header = true;
    }
    if (!gathered.ok()) stream.Cancel();
  }
  const absl::Status ended = stream.Finish();
  if (!gathered.ok()) return gathered;
  if (!ended.ok()) return ended;
  return has_header ? absl::OkStatus() : AnswerLost();
}

}  // namespace tensord::client
