#ifndef TENSORD_SERVER_RPC_EXECUTE_SHARED_RESULTS_H_
#define TENSORD_SERVER_RPC_EXECUTE_SHARED_RESULTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/exec/backend/parallel_for.h"
#include "engine/runtime/devices/run.h"
#include "server/observe/metrics/metrics.h"
#include "server/shared_memory/region_store.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// The places in shared memory into which a request wants results. They are found before its run, and kept while it goes
// on, even if the client takes its region back. Confined to its request.
class SharedResults {
 public:
  // Refuses as RegionStore::Find does; UNSUPPORTED_REQUEST if the server shares no memory.
  static absl::StatusOr<SharedResults> Find(const v1::ExecuteRequest& request, const RegionStore* regions,
                                            const std::string& tenant);

  // Returns the places into which a run with these arguments may compute results, as in RunRequest. Left out are
  // results that are kept as well, since the client could change them ever after, and places that overlap others or an
  // argument.
  std::vector<HostSpace> Destinations(const v1::ExecuteRequest& request, absl::Span<const RunTensor> arguments) const;

  // Copies the results that are to be sent and fit there, but for those that are there already. Returns by result
  // whether it is there now; empty: none is.
  std::vector<bool> Write(absl::Span<const RunTensor> results, const ParallelFor& parallel_for, Metrics* metrics) const;

 private:
  std::vector<SharedPart> parts_;  // by result, no region where none is wanted; or empty
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_SHARED_RESULTS_H_
