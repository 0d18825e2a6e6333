#ifndef TENSORD_CLIENTS_LOAD_LOAD_RUN_H_
#define TENSORD_CLIENTS_LOAD_LOAD_RUN_H_

#include "absl/status/statusor.h"
#include "clients/load/load_plan.h"
#include "clients/load/load_result.h"

namespace tensord::load {

// Calls the server as the plan says, and returns when every call has ended: calls still under way some seconds after
// the plan's end are cancelled. A run ends early if it is interrupted, or if its server is gone. One thread keeps time,
// plan.threads wait for answers, however many calls are under way. UNAVAILABLE if the server cannot be reached to begin
// with; later failures are part of the result.
absl::StatusOr<LoadResult> RunLoad(const LoadPlan& plan);

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_LOAD_RUN_H_
