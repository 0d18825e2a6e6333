#include "server/observe/library_logs.h"

#include <grpc/support/log.h>

#include <cstdio>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "server/observe/json_line.h"

namespace tensord::server {
namespace {

// Straight to standard error: gRPC may log while the server's own log is already gone.
void WriteGrpcLine(gpr_log_func_args* args) {
  JsonLine line;
  line.Add("ts", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone()));
  line.Add("level", args->severity == GPR_LOG_SEVERITY_ERROR ? "error" : "info");
  line.Add("event", "grpc");
  line.Add("message", args->message);
  const std::string text = std::move(line).Take() + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void TakeOverLibraryLogs() {
  gpr_set_log_function(&WriteGrpcLine);
  google::protobuf::SetLogHandler(nullptr);
}

}  // namespace tensord::server
