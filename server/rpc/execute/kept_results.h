#ifndef TENSORD_SERVER_RPC_EXECUTE_KEPT_RESULTS_H_
#define TENSORD_SERVER_RPC_EXECUTE_KEPT_RESULTS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/compile/compiled_program.h"
#include "engine/runtime/devices/run.h"
#include "server/sessions/handle_claim.h"
#include "server/sessions/resident_ledger.h"

namespace tensord::server {

// The results of one run that stay on the server: what they are charged before the run, and the memory that they lie
// in after it. Confined to its request.
class KeptResults {
 public:
  // `results` are the outputs that are kept, in the order of the claim's names.
  explicit KeptResults(std::vector<size_t> results) : results_(std::move(results)) {}

  absl::Span<const size_t> results() const { return results_; }

  // Charges those whose sizes the arguments decide, against what donated arguments give free. `writable` says of each
  // use of the claim whether the run may write over it. Refuses arguments that the program does not take, and
  // LIMIT_EXCEEDED.
  absl::Status Charge(const CompiledProgram& program, absl::Span<const HostTensor> arguments, const HandleClaim& claim,
                      absl::Span<const bool> writable);

  // Of results that are to come.
  int64_t charged_bytes() const { return charge_.bytes(); }

  // What the claim is to be fulfilled with. A result that is a resident tensor shares its memory; one in memory of its
  // own takes that; others are copied. `results` of the run become readers of what is kept. LIMIT_EXCEEDED where the
  // run has decided a size that does not fit.
  absl::StatusOr<std::vector<HandleClaim::Kept>> Take(const CompiledProgram& program, const HandleClaim& claim,
                                                      absl::Span<const bool> writable,
                                                      std::vector<HostTensor>* results);

 private:
  absl::StatusOr<MemoryCharge> ChargeFor(int64_t bytes, const HandleClaim& claim, const std::string& device);

  std::vector<size_t> results_;
  MemoryCharge charge_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_KEPT_RESULTS_H_
