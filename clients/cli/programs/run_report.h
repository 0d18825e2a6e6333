#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_RUN_REPORT_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_RUN_REPORT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/shell/console.h"
#include "tensord/client.h"
#include "tensord/messages.h"

namespace tensord::cli {

// The report of `run` when it is done.
struct RunReport {
  struct Output {
    std::string name;
    std::string file;  // empty: not written, so its first values are shown
  };

  // A call of ours to the server: "connect", "compile", "execute".
  struct Call {
    std::string name;
    absl::Duration start;  // since the command began
    absl::Duration duration;
  };

  std::vector<Call> calls;  // in order; the last one brought the result
  v1::CompileResponse compiled;
  client::ExecuteResult result;
  v1::ExecutionStats stats;               // of the result; those to be shown
  std::vector<Output> outputs;            // one for each of result.outputs
  bool has_used_standard_output = false;  // for data, which nothing is to follow
};

// Says nothing if standard output was used for data. Returns the exit status.
int PrintRunReport(const RunReport& report, Console& console);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_RUN_REPORT_H_
