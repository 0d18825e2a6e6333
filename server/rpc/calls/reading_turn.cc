#include "server/rpc/calls/reading_turn.h"

#include <memory>
#include <utility>

#include "engine/base/refusal.h"
#include "server/rpc/calls/request_wait.h"

namespace tensord::server {
namespace {

absl::Status RefuseFull(TurnPool::Place::Answer answer, const TurnPool::Bounds& bounds) {
  const bool is_tenants = answer == TurnPool::Place::Answer::kTenantFull;
  const int64_t most = is_tenants ? bounds.max_queued_per_tenant : bounds.max_queued;
  return RefuseLimit(
      Refusal::kQueueFull, is_tenants ? "scheduling.tenant_queue_percent" : "receive.queue_length", most, most + 1,
      is_tenants ? "long requests of one tenant that wait to be read" : "long requests that wait to be read");
}

}  // namespace

absl::Status InReadingTurn(const ServedCall& call, absl::Time deadline, std::string for_what,
                           std::function<void()> work, std::function<void(const absl::Status&)> give_up) {
  TurnPool* const readers = call.parts().admission.readers;
  const std::string tenant = call.caller().tenant;
  const auto wait =
      std::make_shared<RequestWait>(call.parts().admission.alarms, deadline, call.cancel(), std::move(for_what));
  const TurnPool::Place place = readers->Submit(tenant, [wait, work = std::move(work)] {
    if (wait->End()) work();
  });
  if (!place.taken()) return RefuseFull(place.answer, readers->bounds());
  // Not the call's own any more: its turn may have come, and all be over.
  wait->Watch([readers, tenant, id = place.id, give_up = std::move(give_up)](const absl::Status& status) {
    readers->Drop(tenant, id);
    give_up(status);
  });
  return absl::OkStatus();
}

void ReadInTurn(RpcRequest* request, std::function<void()> read) {
  const absl::Status taken = InReadingTurn(
      request->call(), request->deadline(), "the request was read",
      [request, read = std::move(read)] {
        request->record().stages.End(Stage::kAdmit);
        request->open().At(Stage::kParse);
        request->Continue(read);
      },
      [request](const absl::Status& status) {
        request->record().stages.End(Stage::kAdmit);
        request->Fail(status);
      });
  if (!taken.ok()) request->Fail(taken);
}

}  // namespace tensord::server
