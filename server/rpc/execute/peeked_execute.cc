#include "server/rpc/execute/peeked_execute.h"

#include <grpcpp/support/slice.h>

#include <string>
#include <vector>

#include "server/rpc/wire/slice_reader.h"
#include "server/rpc/wire/wire_bytes.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

using Request = v1::ExecuteRequest;

// More than a request has that is worth a look.
constexpr int kMostFields = 4096;

// One of another length than the digits of a fingerprint is none.
std::optional<Fingerprint> ReadFingerprint(SliceReader* reader) {
  constexpr int64_t kDigits = 2 * Fingerprint::kBytes;
  int64_t length = 0;
  std::vector<absl::string_view> pieces;
  if (!reader->ReadLength(&length) || length != kDigits || !reader->ReadPieces(length, &pieces)) return std::nullopt;
  if (pieces.size() == 1) return Fingerprint::FromHex(pieces[0]);
  std::string joined;
  for (const absl::string_view piece : pieces) joined.append(piece.data(), piece.size());
  return Fingerprint::FromHex(joined);
}

}  // namespace

std::optional<PeekedExecute> PeekExecute(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return std::nullopt;
  SliceReader reader(slices);
  std::optional<Fingerprint> fingerprint;
  int32_t priority = 0;
  for (int fields = 0; reader.remaining() > 0; ++fields) {
    if (fields == kMostFields) return std::nullopt;
    uint8_t tag = 0;
    uint64_t value = 0;
    int64_t length = 0;
    if (!reader.ReadByte(&tag)) return std::nullopt;
    switch (tag) {
      case LengthTag(Request::kFingerprintFieldNumber):
        fingerprint = ReadFingerprint(&reader);
        if (!fingerprint.has_value()) return std::nullopt;
        break;
      case VarintTag(Request::kPriorityFieldNumber):
        if (!reader.ReadVarint(&value)) return std::nullopt;
        priority = static_cast<int32_t>(value);
        break;
      case VarintTag(Request::kRequestIdFieldNumber):
      case VarintTag(Request::kProfileFieldNumber):
        if (!reader.SkipVarint()) return std::nullopt;
        break;
      case LengthTag(Request::kArgumentsFieldNumber):
      case LengthTag(Request::kResultsFieldNumber):
        if (!reader.ReadLength(&length) || !reader.Skip(length)) return std::nullopt;
        break;
      default:
        return std::nullopt;
    }
  }
  if (!fingerprint.has_value()) return std::nullopt;
  return PeekedExecute{.fingerprint = *fingerprint, .priority = priority};
}

}  // namespace tensord::server
