#include "server/shared_memory/broker_client.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
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
  for (const std::string& region : regions_) parts_.regions->Remove(region);
}

BrokerClient::Answer BrokerClient::Refused(const absl::Status& status) {
  Answer answer;
  *answer.reply.mutable_error() = codec::EncodeError(status);
  return answer;
}

BrokerClient::Answer BrokerClient::Handle(absl::string_view packet) {
  absl::StatusOr<Answer> answer = Decide(packet);
  if (answer.ok()) return *std::move(answer);
  parts_.refusals->Count(KindOf(answer.status()));
  return Refused(answer.status());
}

absl::StatusOr<BrokerClient::Answer> BrokerClient::Decide(absl::string_view packet) {
  if (packet.size() > kMaxBrokerPacketBytes) {
    return Refuse(Refusal::kMalformedMessage,
                  absl::StrCat("a request for shared memory has at most ", kMaxBrokerPacketBytes, " bytes"));
  }
  v1::SharedMemoryRequest request;
  if (!request.ParseFromArray(packet.data(), static_cast<int>(packet.size()))) {
    return Refuse(Refusal::kMalformedMessage, "the packet is no tensord.v1.SharedMemoryRequest");
  }
  switch (request.request_case()) {
    case v1::SharedMemoryRequest::kAllocate:
      return Allocate(request.authorization(), request.allocate().byte_count());
    case v1::SharedMemoryRequest::kFree:
      return Free(request.free().region());
    case v1::SharedMemoryRequest::REQUEST_NOT_SET:
      break;
  }
  return Refuse(Refusal::kUnsupportedRequest, "this server does not know what the request for shared memory asks for");
}

absl::StatusOr<BrokerClient::Answer> BrokerClient::Allocate(const std::string& authorization, int64_t size_bytes) {
  Credentials credentials{.authorizations = {}, .certificate_names = {}, .over_unix_socket = true};
  if (!authorization.empty()) credentials.authorizations.push_back(authorization);
  Caller caller;
  // Whoever may run programs may have memory for their arguments.
  RETURN_IF_ERROR(parts_.authenticator->Admit(credentials, peer_, RpcMethod::kExecute, &caller));
  if (parts_.gate->snapshot().state != ServingState::kServing) {
    return Refuse(Refusal::kServerDraining, "the server gives no shared memory: it starts or shuts down");
  }
  if (parts_.rates != nullptr) RETURN_IF_ERROR(parts_.rates->Admit(caller.tenant, absl::Now()));
  Answer answer;
  ASSIGN_OR_RETURN(answer.region, parts_.regions->Allocate(caller.tenant, size_bytes));
  regions_.insert(answer.region->id());
  answer.reply.set_region(answer.region->id());
  answer.reply.set_byte_count(answer.region->size_bytes());
  return answer;
}

absl::StatusOr<BrokerClient::Answer> BrokerClient::Free(const std::string& region) {
  if (regions_.erase(region) == 0) {
    return Refuse(Refusal::kRegionUnknown, "no region of that name was handed out over this connection");
  }
  parts_.regions->Remove(region);
  Answer answer;
  answer.reply.set_region(region);
  return answer;
}

}  // namespace tensord::server
