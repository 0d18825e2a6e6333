#ifndef TENSORD_CLIENTS_LOAD_OVERLOAD_H_
#define TENSORD_CLIENTS_LOAD_OVERLOAD_H_

#include <vector>

#include "absl/status/statusor.h"
#include "clients/load/load_plan.h"
#include "clients/load/load_result.h"

namespace tensord::load {

// The performance of a server that gets more calls than it can serve.
struct OverloadResult {
  // The closed loop with the best goodput, and that goodput.
  int peak_concurrency = 0;
  double peak_goodput = 0;
  double offered = 0;  // calls a second
  LoadResult overload;

  // Returns the share of the peak; 1 if overload costs nothing.
  double goodput_ratio() const { return peak_goodput > 0 ? overload.goodput() / peak_goodput : 0; }
};

// Finds the goodput of a closed loop, with 1, 2, 4, … calls under way until it grows no more, or with those of
// `concurrencies` if there are any. Then offers `factor` times that in an open loop. Warm-up and duration of the plan
// are those of the open loop; a closed one takes a quarter, and at least a second if the plan does. FAILED_PRECONDITION
// if no call succeeds.
absl::StatusOr<OverloadResult> RunOverload(LoadPlan plan, double factor, const std::vector<int>& concurrencies);

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_OVERLOAD_H_
