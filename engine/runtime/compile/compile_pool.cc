#include "engine/runtime/compile/compile_pool.h"

#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord {

absl::StatusOr<CompilePool::Ticket> CompilePool::Submit(std::string tenant, TurnPool::Work work) {
  const TurnPool::Place place = pool_.Submit(tenant, std::move(work));
  const Bounds most = bounds();
  switch (place.answer) {
    case TurnPool::Place::Answer::kTaken:
      break;
    case TurnPool::Place::Answer::kQueueFull:
      return RefuseLimit(Refusal::kQueueFull, "compiler.queue_length", most.max_queued, most.max_queued + 1,
                         "compilations that wait");
    case TurnPool::Place::Answer::kTenantFull:
      return RefuseLimit(Refusal::kQueueFull, "scheduling.tenant_queue_percent", most.max_queued_per_tenant,
                         most.max_queued_per_tenant + 1, "compilations of one tenant that wait");
  }
  return Ticket{.tenant = std::move(tenant), .id = place.id};
}

QueuedWork::Submit CompilePool::SubmitFor(const std::string& tenant) {
  return [this, tenant](std::function<void()> work) -> absl::StatusOr<QueuedWork::Drop> {
    ASSIGN_OR_RETURN(Ticket ticket, Submit(tenant, std::move(work)));
    return [this, ticket = std::move(ticket)] { Drop(ticket); };
  };
}

}  // namespace tensord
