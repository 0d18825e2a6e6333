#ifndef TENSORD_EXECUTION_STATS_H_
#define TENSORD_EXECUTION_STATS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "tensord/message_names.h"

namespace tensord::client {

// The server's account of one run. An immutable value; copies share it. Thread-compatible.
class ExecutionStats {
 public:
  // Makes an account of nothing: no device, and zeros.
  ExecutionStats() = default;
  explicit ExecutionStats(const v1::ExecutionStats& message);

  // Returns the device's name, "cpu:0".
  const std::string& device() const;
  absl::Duration queue_time() const;
  // Returns nothing if the program was compiled before.
  std::optional<absl::Duration> compile_time() const;
  absl::Duration run_time() const;
  // Returns the most memory that the run held on the device at a time.
  int64_t peak_bytes() const;

  // Returns all of it (messages.h), with the segments of a profile.
  const v1::ExecutionStats& message() const;

 private:
  std::shared_ptr<const v1::ExecutionStats> message_;  // null: of nothing
};

}  // namespace tensord::client

#endif  // TENSORD_EXECUTION_STATS_H_
