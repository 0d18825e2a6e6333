#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_RUN_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/runtime/compile/compile_pool.h"
#include "engine/runtime/compile/compiled_program.h"
#include "engine/runtime/devices/cancel_token.h"
#include "engine/runtime/devices/device_events.h"
#include "engine/runtime/devices/run_start.h"
#include "engine/runtime/devices/run_tensor.h"
#include "engine/runtime/devices/segment_times.h"
#include "engine/runtime/programs/quarantine.h"

namespace tensord {

// Memory of the host into which a result may be computed, aligned to kBufferAlignment. Others may read and write there
// meanwhile, which spoils that result and those of the same run that follow from it, and nothing else.
struct HostSpace {
  std::shared_ptr<void> bytes;  // null: there is none
  int64_t size_bytes = 0;
};

struct RunOutcome {
  std::vector<RunTensor> results;  // in the order of the outputs
  absl::Duration queue_time;
  absl::Duration run_time;
  int64_t peak_bytes = 0;
  std::vector<SegmentProfile> profile;  // where it was asked for
};

struct RunRequest {
  CompiledProgramPtr program;
  std::vector<RunTensor> arguments;
  // Memory by output, none overlapping another or an argument; outputs beyond the list have none. A result whose bytes
  // are not there is to be copied: it is an argument or another output, or its device, its size or its kernel does not
  // allow it.
  std::vector<HostSpace> destinations;
  // True for outputs that are to stay on the device: nobody wants their bytes on the host. Outputs beyond the list are
  // wanted.
  std::vector<bool> stays;
  absl::Time deadline = absl::InfiniteFuture();  // as SteadyNow counts
  std::shared_ptr<const CancelToken> cancel;     // may be null
  bool profile = false;
  SegmentTimes* segment_times = nullptr;  // to which the times of some runs are added; may be null
  DeviceEvents* events = nullptr;         // that count the run; may be null
  // Binds what a run needs in its middle, on a device that prepares slowly; null: the run's thread does, as it does on
  // other devices. Must outlive its work.
  CompilePool* compile_pool = nullptr;
  // The programs that do not run, not even if they waited for the device before; may be null.
  const Quarantine* quarantine = nullptr;
  std::string tenant;    // who shares the device with others
  int32_t priority = 0;  // higher runs first; engine/runtime/devices/queued_run.h
  // Asked on the run's thread right before it begins: a run that is refused there has not begun. May be null.
  std::function<absl::Status()> admit;
  std::shared_ptr<RunStart> started;  // told when the run begins; may be null
  // The bytes of its memory that already count as the device's resident tensors: arguments, results that stay.
  int64_t resident_bytes = 0;
  // Called once, from the executor's thread (or from the destructor's, with UNAVAILABLE, when the executor stops
  // first).
  std::function<void(absl::StatusOr<RunOutcome>)> done;
};

// Fails with CANCELLED or DEADLINE_EXCEEDED if nobody waits for the run any more.
absl::Status CheckWanted(const RunRequest& request);

// Runs on the calling thread: binds, imports the arguments that are bytes of the host, runs, and exports the results
// that are wanted there. Refuses a request that is cancelled or too late before it
// starts, between its kernels or inside them. `done` is not called.
absl::StatusOr<RunOutcome> RunProgram(const RunRequest& request, absl::Duration queue_time);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_RUN_H_
