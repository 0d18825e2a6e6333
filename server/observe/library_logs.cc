#include "server/observe/library_logs.h"

#include <grpc/support/log.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "server/observe/json_line.h"

namespace tensord::server {
namespace {

// Straight to standard error: gRPC may log while the server's own log is already gone.
void WriteLine(absl::string_view level, absl::string_view message) {
  JsonLine line;
  line.Add("ts", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone()));
  line.Add("level", level);
  line.Add("event", "grpc");
  line.Add("message", message);
  const std::string text = std::move(line).Take() + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void WriteGrpcLine(gpr_log_func_args* args) {
  WriteLine(args->severity == GPR_LOG_SEVERITY_ERROR ? "error" : "info", args->message);
}

}  // namespace

void TakeOverLibraryLogs() {
  // Its lines have the metadata of calls, tokens too.
  if (const char* const tracers = std::getenv("GRPC_TRACE"); tracers != nullptr && *tracers != '\0') {
    unsetenv("GRPC_TRACE");
    WriteLine("error", "GRPC_TRACE is ignored: what gRPC traces shows the tokens of calls");
  }
  gpr_set_log_function(&WriteGrpcLine);
  google::protobuf::SetLogHandler(nullptr);
}

}  // namespace tensord::server
