#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_TIMED_RUN_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_TIMED_RUN_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "clients/cli/programs/program_flags.h"
#include "clients/cli/programs/run_report.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::cli {

// Connects, compiles the graph and runs it, each call timed. The report names no outputs yet.
absl::StatusOr<RunReport> CompileAndRun(const ProgramFlagValues& values, const v1::Graph& graph,
                                        absl::Span<const client::HostTensor> inputs);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_TIMED_RUN_H_
