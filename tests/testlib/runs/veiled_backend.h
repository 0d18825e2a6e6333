#ifndef TENSORD_TESTS_TESTLIB_RUNS_VEILED_BACKEND_H_
#define TENSORD_TESTS_TESTLIB_RUNS_VEILED_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "engine/exec/backend/backend.h"

namespace tensord {

struct VeiledOptions {
  std::string kind = {};         // empty: that of the other
  bool prepares_slowly = false;  // DeviceDescription::prepares_slowly
  // Called before memory is made, written or read for the host, which its refusal keeps from happening.
  std::function<absl::Status()> before_transfer = {};
};

// Returns a device that computes as a backend in host memory does, and so gives its very bits, but behind memory that
// the host cannot dereference: the processor accepts none of its addresses, so that any code that touches a buffer
// without asking the backend ends with a fault. Has all ops of the other. For whole servers; HiddenMemoryBackend is the
// one for the engine.
std::unique_ptr<Backend> MakeVeiledBackend(std::unique_ptr<Backend> in_host_memory, VeiledOptions options = {});

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RUNS_VEILED_BACKEND_H_
