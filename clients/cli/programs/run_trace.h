#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_RUN_TRACE_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_RUN_TRACE_H_

#include <string>

#include "absl/status/statusor.h"
#include "clients/cli/programs/run_report.h"

namespace tensord::cli {

// Returns a run as trace events in Chrome's JSON format, which chrome://tracing and Perfetto load: complete events
// ("X") with times in microseconds since the command began. Process 1 is tensordctl, with its calls; process 2 the
// server, with its phases (thread 1) and the program's segments (thread 2), whose arguments name nodes, kernel and
// backend. No clock of the server is compared with ours: its phases are drawn in the middle of the call that they
// belong to.
absl::StatusOr<std::string> TraceJson(const RunReport& report);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_RUN_TRACE_H_
