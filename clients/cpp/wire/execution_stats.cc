#include "tensord/execution_stats.h"

#include "clients/cpp/wire/duration.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

ExecutionStats::ExecutionStats(const v1::ExecutionStats& message)
    : message_(std::make_shared<const v1::ExecutionStats>(message)) {}

const v1::ExecutionStats& ExecutionStats::message() const {
  return message_ == nullptr ? v1::ExecutionStats::default_instance() : *message_;
}

const std::string& ExecutionStats::device() const { return message().device(); }

absl::Duration ExecutionStats::queue_time() const { return ToAbslDuration(message().queue_time()); }

std::optional<absl::Duration> ExecutionStats::compile_time() const {
  if (!message().has_compile_time()) return std::nullopt;
  return ToAbslDuration(message().compile_time());
}

absl::Duration ExecutionStats::run_time() const { return ToAbslDuration(message().run_time()); }

int64_t ExecutionStats::peak_bytes() const { return message().peak_bytes(); }

}  // namespace tensord::client
