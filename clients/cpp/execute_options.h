#ifndef TENSORD_CLIENTS_CPP_EXECUTE_OPTIONS_H_
#define TENSORD_CLIENTS_CPP_EXECUTE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/cpp/dtype.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

struct ExecuteOptions {
  // Where a graph runs. An execution by fingerprint keeps what the program was compiled with.
  std::string device;
  std::vector<std::string> disabled_passes;
  // Order in which results come back. By fingerprint: the order that the program was compiled with.
  MemoryOrder order = MemoryOrder::kRowMajor;
  int32_t priority = 0;
  bool profile = false;
  std::optional<absl::Duration> deadline;
};

// The options as the wire has them.
v1::CompileOptions ToCompileOptions(const ExecuteOptions& options);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_EXECUTE_OPTIONS_H_
