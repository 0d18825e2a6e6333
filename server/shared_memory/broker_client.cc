#include "server/shared_memory/broker_client.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "proto/codec/error_codec.h"

namespace tensord::server {

BrokerRefusal KindOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return BrokerRefusal::kCaller;
    case absl::StatusCode::kUnavailable:
      return BrokerRefusal::kDraining;
    case absl::StatusCode::kInternal:
      return BrokerRefusal::kInternal;
    case absl::StatusCode::kResourceExhausted:
      return IsRefusal(status, Refusal::kOutOfMemory) ? BrokerRefusal::kMemory : BrokerRefusal::kLimit;
    default:
      return BrokerRefusal::kMalformed;
  }
}

BrokerClient::~BrokerClient() {
  for (const auto& [region, bytes] : regions_) parts_.regions->Remove(region);
}

int64_t BrokerClient::held_bytes() const {
  int64_t held = 0;
  for (const auto& [region, bytes] : regions_) held += bytes;
  return held;
}

BrokerClient::Answer BrokerClient::Refused(const absl::Status& status) {
  Answer answer;
  *answer.reply.mutable_error() = codec::EncodeError(status);
  return answer;
}

BrokerClient::Answer BrokerClient::Refuse(const absl::Status& status) {
  parts_.refusals->Count(KindOf(status));
  return Refused(status);
}

BrokerClient::Answer BrokerClient::Handle(absl::string_view packet) {
  const absl::StatusOr<Wanted> wanted = Begin(packet);
  return wanted.ok() ? Finish(*wanted) : Refuse(wanted.status());
}

absl::StatusOr<BrokerClient::Wanted> BrokerClient::Begin(absl::string_view packet) {
  if (packet.size() > kMaxBrokerPacketBytes) {
    return tensord::Refuse(Refusal::kMalformedMessage,
                           absl::StrCat("a request for shared memory has at most ", kMaxBrokerPacketBytes, " bytes"));
  }
  v1::SharedMemoryRequest request;
  if (!request.ParseFromArray(packet.data(), static_cast<int>(packet.size()))) {
    return tensord::Refuse(Refusal::kMalformedMessage, "the packet is no tensord.v1.SharedMemoryRequest");
  }
  switch (request.request_case()) {
    case v1::SharedMemoryRequest::kAllocate:
      return Admit(request.authorization(), request.allocate().byte_count());
    case v1::SharedMemoryRequest::kFree: {
      const auto region = regions_.find(request.free().region());
      if (region == regions_.end()) {
        return tensord::Refuse(Refusal::kRegionUnknown, "no region of that name was handed out over this connection");
      }
      return Wanted{.tenant = tenant_, .size_bytes = region->second, .freed = region->first};
    }
    case v1::SharedMemoryRequest::REQUEST_NOT_SET:
      break;
  }
  return tensord::Refuse(Refusal::kUnsupportedRequest,
                         "this server does not know what the request for shared memory asks for");
}

absl::StatusOr<BrokerClient::Wanted> BrokerClient::Admit(const std::string& authorization, int64_t size_bytes) {
  Credentials credentials{.authorizations = {}, .certificate_names = {}, .over_unix_socket = true};
  if (!authorization.empty()) credentials.authorizations.push_back(authorization);
  Caller caller;
  // A caller that may run programs may have memory for their arguments.
  RETURN_IF_ERROR(parts_.authenticator->Admit(credentials, peer_, RpcMethod::kExecute, &caller));
  if (parts_.gate->snapshot().state != ServingState::kServing) {
    return tensord::Refuse(Refusal::kServerDraining, "the server gives no shared memory: it starts or shuts down");
  }
  if (parts_.rates != nullptr) RETURN_IF_ERROR(parts_.rates->Admit(caller.tenant, SteadyNow()));
  tenant_ = caller.tenant;
  return Wanted{.tenant = std::move(caller.tenant), .size_bytes = size_bytes, .freed = ""};
}

BrokerClient::Answer BrokerClient::Finish(const Wanted& wanted) {
  if (!wanted.freed.empty()) {
    regions_.erase(wanted.freed);
    parts_.regions->Remove(wanted.freed);
    Answer answer;
    answer.reply.set_region(wanted.freed);
    return answer;
  }
  absl::StatusOr<Answer> answer = Allocate(wanted);
  return answer.ok() ? *std::move(answer) : Refuse(answer.status());
}

absl::StatusOr<BrokerClient::Answer> BrokerClient::Allocate(const Wanted& wanted) {
  Answer answer;
  ASSIGN_OR_RETURN(answer.region, parts_.regions->Allocate(wanted.tenant, wanted.size_bytes));
  regions_.emplace(answer.region->id(), answer.region->size_bytes());
  answer.reply.set_region(answer.region->id());
  answer.reply.set_byte_count(answer.region->size_bytes());
  return answer;
}

}  // namespace tensord::server
