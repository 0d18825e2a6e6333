#ifndef TENSORD_EXECUTE_OPTIONS_H_
#define TENSORD_EXECUTE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tensord/dtype.h"
#include "tensord/message_names.h"

namespace tensord::client {

struct ExecuteOptions {
  // Device of a graph. An execution by fingerprint uses the program's own.
  std::string device = {};
  std::vector<std::string> disabled_passes = {};
  // Memory order of results. An execution by fingerprint uses the program's own.
  MemoryOrder order = MemoryOrder::kRowMajor;
  int32_t priority = 0;
  bool profile = false;
  std::optional<absl::Duration> deadline = {};
};

// Converts the options to their message.
v1::CompileOptions ToCompileOptions(const ExecuteOptions& options);

}  // namespace tensord::client

#endif  // TENSORD_EXECUTE_OPTIONS_H_
