#include "server/observe/logs/library_logs.h"

#include <grpc/support/log.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "google/protobuf/stubs/logging.h"
#include "server/observe/logs/json_line.h"
#include "server/observe/logs/line_output.h"

namespace tensord::server {
namespace {

constexpr size_t kMostMessage = 2000;  // so that a line is whole

// How many lines are written: a client can have one for each of its calls.
class LineRate {
 public:
  // Takes the right to write a line; false if none may be written now. `left_out` gets the lines left out before it.
  bool Take(int64_t* left_out) {
    const auto now = Clock::now();
    MutexLock lock(&mutex_);
    lines_ = std::min(kBurst, lines_ + std::chrono::duration<double>(now - counted_).count() * kPerSecond);
    counted_ = now;
    if (lines_ < 1) {
      ++left_out_;
      return false;
    }
    --lines_;
    *left_out = std::exchange(left_out_, 0);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kBurst = 20;
  static constexpr double kPerSecond = 5;

  Mutex mutex_;
  double lines_ ABSL_GUARDED_BY(mutex_) = kBurst;
  Clock::time_point counted_ ABSL_GUARDED_BY(mutex_) = Clock::now();
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Straight to standard error: gRPC may log while the server's own log is already gone. A thread of gRPC's waits for no
// reader.
void WriteLine(absl::string_view level, absl::string_view message, int64_t left_out = 0) {
  JsonLine line;
  line.Add("ts", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone()));
  line.Add("level", level);
  line.Add("event", "grpc");
  line.Add("message", message.substr(0, kMostMessage));
  if (left_out > 0) line.Add("left_out", left_out);
  LineOutput::WriteNow(STDERR_FILENO, std::move(line).Take());
}

std::atomic<int64_t> grpc_errors{0};

void WriteGrpcLine(gpr_log_func_args* args) {
  static LineRate* const rate = new LineRate;
  const bool is_error = args->severity == GPR_LOG_SEVERITY_ERROR;
  if (is_error) ++grpc_errors;
  int64_t left_out = 0;
  if (rate->Take(&left_out)) WriteLine(is_error ? "error" : "info", args->message, left_out);
}

}  // namespace

int64_t CountGrpcErrors() { return grpc_errors; }

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
