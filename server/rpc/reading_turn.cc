#include "server/rpc/reading_turn.h"

#include <memory>
#include <utility>

#include "engine/base/refusal.h"
#include "server/rpc/request_wait.h"

namespace tensord::server {

absl::Status InReadingTurn(const ServiceParts& parts, const std::string& tenant, std::function<void()> work) {
  const TurnPool::Place place = parts.readers->Submit(tenant, std::move(work));
  if (place.taken()) return absl::OkStatus();
  const TurnPool::Bounds bounds = parts.readers->bounds();
  const bool is_tenants = place.answer == TurnPool::Place::Answer::kTenantFull;
  const int64_t most = is_tenants ? bounds.max_queued_per_tenant : bounds.max_queued;
  return RefuseLimit(
      Refusal::kQueueFull, is_tenants ? "scheduling.tenant_queue_percent" : "receive.queue_length", most, most + 1,
      is_tenants ? "long requests of one tenant that wait to be read" : "long requests that wait to be read");
}

void ReadInTurn(RpcRequest* request, std::function<void()> read) {
  const auto wait = std::make_shared<RequestWait>(request->parts().alarms, request->deadline(), request->cancel(),
                                                  "the request was read");
  const absl::Status taken =
      InReadingTurn(request->parts(), request->caller().tenant, [request, wait, read = std::move(read)] {
        if (!wait->End()) return;
        request->record().stages.End(Stage::kAdmit);
        request->Continue(read);
      });
  if (!taken.ok()) return request->Fail(taken);
  // Not the call's own any more: its turn may have come, and all be over.
  wait->Watch([request](const absl::Status& status) {
    request->record().stages.End(Stage::kAdmit);
    request->Fail(status);
  });
}

}  // namespace tensord::server
