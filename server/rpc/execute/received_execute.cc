#include "server/rpc/execute/received_execute.h"

#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/base/streaming_copy.h"
#include "server/rpc/wire/parse_message.h"
#include "server/rpc/wire/slice_reader.h"
#include "server/rpc/wire/spread_copy.h"
#include "server/rpc/wire/wire_bytes.h"

namespace tensord::server {
namespace {

using Pieces = std::vector<absl::string_view>;
using Payload = ReceivedExecute::Payload;

// Below this protobuf's own copy costs no more than a buffer.
constexpr int64_t kGatherFrom = 4096;
// Protobuf's own bound on lengths lies a little below 2 GiB; messages near it are left to protobuf.
constexpr int64_t kMostWalked = std::numeric_limits<int32_t>::max() - 4096;

using Request = v1::ExecuteRequest;
constexpr uint8_t kArgument = LengthTag(Request::kArgumentsFieldNumber);
constexpr uint8_t kTensor = LengthTag(v1::Argument::kTensorFieldNumber);
constexpr uint8_t kData = LengthTag(v1::Tensor::kDataFieldNumber);

// Protobuf's stream over pieces that lie elsewhere.
class PieceStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PieceStream(const Pieces& pieces) : pieces_(pieces) {}

  bool Next(const void** data, int* size) override {
    if (next_ == pieces_.size()) return false;
    const absl::string_view rest = pieces_[next_++].substr(offset_);
    offset_ = 0;
    *data = rest.data();
    *size = static_cast<int>(rest.size());
    count_ += *size;
    return true;
  }
  void BackUp(int count) override {
    if (count == 0) return;
    --next_;
    offset_ = pieces_[next_].size() - static_cast<size_t>(count);
    count_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    int size = 0;
    while (count > 0) {
      if (!Next(&data, &size)) return false;
      if (size > count) BackUp(size - count);
      count -= size;
    }
    return true;
  }
  int64_t ByteCount() const override { return count_; }

 private:
  const Pieces& pieces_;
  size_t next_ = 0;
  size_t offset_ = 0;  // in the next piece
  int64_t count_ = 0;
};

// A message taken apart. Pieces lie in the slices, or in `written`.
struct Walked {
  Pieces rest;
  std::deque<std::string> written;
  std::vector<Payload> payloads;
};

// The fields of a tensor around its data.
struct PlainTensor {
  Pieces before, after;
  int64_t header_size = 0;
  Payload payload;
};

// A tensor of `size` bytes whose data occurs once and is large. False for anything unusual.
bool ReadPlainTensor(SliceReader* reader, int64_t size, PlainTensor* tensor) {
  const int64_t end = reader->position() + size;
  bool has_data = false;
  while (reader->position() < end) {
    SliceReader field = *reader;
    uint8_t tag = 0;
    int64_t length = 0;
    if (!reader->ReadByte(&tag)) return false;
    switch (tag) {
      case VarintTag(v1::Tensor::kDtypeFieldNumber):
      case VarintTag(v1::Tensor::kShapeFieldNumber):
      case VarintTag(v1::Tensor::kOrderFieldNumber):
        if (!reader->SkipVarint()) return false;
        break;
      case LengthTag(v1::Tensor::kShapeFieldNumber):
        if (!reader->ReadLength(&length) || !reader->Skip(length)) return false;
        break;
      case kData:
        if (has_data || !reader->ReadLength(&length) || length < kGatherFrom || length > end - reader->position()) {
          return false;
        }
        has_data = true;
        tensor->payload.size = length;
        reader->ReadPieces(length, &tensor->payload.pieces);
        continue;
      default:
        return false;
    }
    const int64_t field_size = reader->position() - field.position();
    field.ReadPieces(field_size, has_data ? &tensor->after : &tensor->before);
    tensor->header_size += field_size;
  }
  return has_data && reader->position() == end;
}

// An argument of `size` bytes that is nothing but a tensor.
bool ReadPlainArgument(SliceReader* reader, int64_t size, PlainTensor* tensor) {
  const int64_t end = reader->position() + size;
  uint8_t tag = 0;
  int64_t length = 0;
  return size >= kGatherFrom && reader->ReadByte(&tag) && tag == kTensor && reader->ReadLength(&length) &&
         length == end - reader->position() && ReadPlainTensor(reader, length, tensor);
}

void Append(const Pieces& pieces, Pieces* to) { to->insert(to->end(), pieces.begin(), pieces.end()); }

// Takes the tensor's payload out of the message, and writes the lengths that it has without.
void TakeApart(PlainTensor tensor, int argument, Walked* walked) {
  std::string& lengths = walked->written.emplace_back();
  AppendLengthTag(Request::kArgumentsFieldNumber, LengthFieldSize(tensor.header_size), &lengths);
  AppendLengthTag(v1::Argument::kTensorFieldNumber, tensor.header_size, &lengths);
  walked->rest.push_back(lengths);
  Append(tensor.before, &walked->rest);
  Append(tensor.after, &walked->rest);
  tensor.payload.argument = argument;
  walked->payloads.push_back(std::move(tensor.payload));
}

// Tells whether the outline of the message is one that encoders make of its known fields. Others are left to protobuf.
bool Walk(SliceReader reader, Walked* walked) {
  int num_arguments = 0;
  while (reader.remaining() > 0) {
    SliceReader field = reader;
    uint8_t tag = 0;
    int64_t length = 0;
    if (!reader.ReadByte(&tag)) return false;
    switch (tag) {
      case VarintTag(Request::kRequestIdFieldNumber):
      case VarintTag(Request::kPriorityFieldNumber):
      case VarintTag(Request::kProfileFieldNumber):
        if (!reader.SkipVarint()) return false;
        break;
      case kArgument: {
        if (!reader.ReadLength(&length)) return false;
        SliceReader inside = reader;
        PlainTensor tensor;
        if (ReadPlainArgument(&inside, length, &tensor)) {
          TakeApart(std::move(tensor), num_arguments++, walked);
          reader = inside;
          continue;
        }
        ++num_arguments;
        reader.Skip(length);
        break;
      }
      case LengthTag(Request::kFingerprintFieldNumber):
      case LengthTag(Request::kGraphFieldNumber):
      case LengthTag(Request::kOptionsFieldNumber):
      case LengthTag(Request::kResultsFieldNumber):
      case LengthTag(Request::kSessionFieldNumber):
        if (!reader.ReadLength(&length) || !reader.Skip(length)) return false;
        break;
      default:
        return false;
    }
    field.ReadPieces(reader.position() - field.position(), &walked->rest);
  }
  return true;
}

// A run of a payload's pieces.
struct Share {
  absl::Span<const absl::string_view> pieces;
  char* to = nullptr;
};

void Copy(const Share& share) {
  char* to = share.to;
  for (const absl::string_view piece : share.pieces) {
    StreamingCopy(piece, to);
    to += piece.size();
  }
}

// Splits pieces into shares of kShareBytes each, or of one longer piece.
std::vector<Share> Split(absl::Span<const absl::string_view> pieces, char* to) {
  std::vector<Share> shares;
  for (size_t begin = 0; begin < pieces.size();) {
    size_t end = begin;
    size_t size = 0;
    while (end < pieces.size() && size < kShareBytes) size += pieces[end++].size();
    shares.push_back({.pieces = pieces.subspan(begin, end - begin), .to = to});
    to += size;
    begin = end;
  }
  return shares;
}

absl::StatusOr<std::shared_ptr<Buffer>> GatherOne(const Payload& payload, HostBufferPool* pool,
                                                  const ParallelFor& parallel_for) {
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, pool->Allocate(payload.size));
  char* const to = static_cast<char*>(buffer->address());
  if (payload.size < kSpreadFrom) {
    char* at = to;
    for (const absl::string_view piece : payload.pieces) {
      std::memcpy(at, piece.data(), piece.size());
      at += piece.size();
    }
    return buffer;
  }
  const std::vector<Share> shares = Split(payload.pieces, to);
  parallel_for(static_cast<int64_t>(shares.size()), [&](int64_t i) { Copy(shares[static_cast<size_t>(i)]); });
  return buffer;
}

}  // namespace

absl::Status ReceivedExecute::Gather(HostBufferPool* pool, const ParallelFor& parallel_for) {
  if (scattered_.empty()) return absl::OkStatus();
  payloads_.resize(static_cast<size_t>(message.arguments_size()));
  for (const Payload& payload : scattered_) {
    ASSIGN_OR_RETURN(payloads_[static_cast<size_t>(payload.argument)], GatherOne(payload, pool, parallel_for));
  }
  scattered_.clear();
  slices_.clear();
  return absl::OkStatus();
}

int64_t ReceivedExecute::scattered_bytes() const {
  int64_t bytes = 0;
  for (const Payload& payload : scattered_) bytes += payload.size;
  return bytes;
}

const Buffer* ReceivedExecute::payload(int argument) const {
  const size_t index = static_cast<size_t>(argument);
  return index < payloads_.size() ? payloads_[index].get() : nullptr;
}

absl::string_view ReceivedExecute::DataOf(int argument) const {
  if (const Buffer* gathered = payload(argument); gathered != nullptr) {
    return {static_cast<const char*>(gathered->address()), static_cast<size_t>(gathered->size_bytes())};
  }
  const std::string& data = message.arguments(argument).tensor().data();
  return {data.data(), data.size()};
}

absl::StatusOr<ReceivedExecute> ReceiveExecute(grpc::ByteBuffer* bytes, const codec::GraphLimits& limits) {
  ReceivedExecute request;
  const int64_t num_bytes = static_cast<int64_t>(bytes->Length());
  std::vector<grpc::Slice> slices;
  Walked walked;
  const bool is_plain = num_bytes >= kGatherFrom && num_bytes <= kMostWalked && bytes->Dump(&slices).ok() &&
                        Walk(SliceReader(slices), &walked) && !walked.payloads.empty();
  if (!is_plain) {
    RETURN_IF_ERROR(ParseMessage(bytes, &request.message));
    return request;
  }
  PieceStream rest(walked.rest);
  RETURN_IF_ERROR(ParseMessage(&rest, num_bytes, &request.message));
  for (const Payload& payload : walked.payloads) {
    RETURN_IF_ERROR(codec::CheckLimit(limits, &codec::GraphLimits::tensor_bytes, payload.size, "bytes of a tensor"));
  }
  request.slices_ = std::move(slices);  // the pieces stay where they are
  request.scattered_ = std::move(walked.payloads);
  bytes->Clear();
  return request;
}

}  // namespace tensord::server
