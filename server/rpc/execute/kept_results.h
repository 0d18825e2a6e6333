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

// The results of one run that stay on the server: their charge before the run, and their memory after it. Confined to
// its request.
class KeptResults {
 public:
  // `results` are the outputs that are kept, in the order of the claim's names.
  explicit KeptResults(std::vector<size_t> results) : results_(std::move(results)) {}

  absl::Span<const size_t> results() const { return results_; }

  // Charges the results whose sizes follow from the arguments, less the bytes that donated arguments free. `writable`
  // says of each use of the claim whether the run may write over it. Refuses arguments that the program does not take,
  // and LIMIT_EXCEEDED.
  absl::Status Charge(const CompiledProgram& program, absl::Span<const RunTensor> arguments, const HandleClaim& claim,
                      absl::Span<const bool> writable);

  // Returns the charge of results to come.
  int64_t charged_bytes() const { return charge_.bytes(); }

  // Returns the results to fulfil the claim with, on their device. A result that is a resident tensor shares its
  // memory; one in memory of its own takes that; others are copied. `results` of the run become readers of the kept
  // memory, and so do their bytes if these are the same. LIMIT_EXCEEDED if the run has decided a size that does not
  // fit.
  absl::StatusOr<std::vector<HandleClaim::Kept>> Take(const CompiledProgram& program, const HandleClaim& claim,
                                                      absl::Span<const bool> writable, std::vector<RunTensor>* results);

 private:
  absl::StatusOr<MemoryCharge> ChargeFor(int64_t bytes, const HandleClaim& claim, const std::string& device);

  std::vector<size_t> results_;
  MemoryCharge charge_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_KEPT_RESULTS_H_
