#ifndef TENSORD_SERVER_OBSERVE_LOGS_LOG_H_
#define TENSORD_SERVER_OBSERVE_LOGS_LOG_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/observe/records/request_record.h"

namespace spdlog {
class logger;
}

namespace tensord::server {

class FlightRecorder;
class LineOutput;

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };

// "debug", "info", "warning", "error"; anything else is kOff.
LogLevel LogLevelFromName(absl::string_view name);

struct LogField {
  absl::string_view key;
  absl::string_view text;  // empty: the field is left out
};

// The server's log: JSON objects, one a line, on standard error. A thread of the log formats and writes the lines,
// several at a time: waking it for each line would cost a call more than the line. It writes warnings and errors at
// once. A stalled or full reader loses lines, which are counted, and never holds up a call. Thread-safe. The destructor
// writes the lines that are left, unless the reader takes too long.
class Log {
 public:
  struct Options {
    LogLevel level = LogLevel::kInfo;
    bool requests = true;  // one line a call
    size_t max_waiting = 16384;
    FlightRecorder* recorder = nullptr;  // is told of every event, whatever the level; outlives the log; may be null
    int descriptor = 2;                  // where lines are written: standard error
  };

  // Writes to `logger`, or to the descriptor if it is null. Only the log's thread uses the logger.
  explicit Log(const Options& options, std::shared_ptr<spdlog::logger> logger = nullptr);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool Logs(LogLevel level) const {
    const LogLevel least = level_.load(std::memory_order_relaxed);
    return level >= least && least != LogLevel::kOff;
  }
  bool takes_requests() const { return requests_; }  // where the level lets them through
  bool LogsRequests() const { return requests_ && Logs(LogLevel::kInfo); }

  // Changes the level, and logs the change if the old or the new level lets it through.
  void SetLevel(LogLevel level);
  void SetRequests(bool requests) { requests_.store(requests, std::memory_order_relaxed); }

  // Logs an event of the server's own life: "listening", "draining".
  void Event(LogLevel level, absl::string_view event, absl::string_view message,
             std::initializer_list<LogField> fields = {});
  // Logs a line of the audit, at every level but kOff. Only warnings and errors go to the flight recorder as events
  // too: the recorder has the calls already, and an operator who polls would push other events out of it.
  void Audit(LogLevel level, absl::string_view event, absl::string_view message,
             std::initializer_list<LogField> fields);
  void Request(RequestRecord record);

  int64_t dropped_lines() const;
  // Waits until all earlier lines are written, `at_most` that long.
  void Flush(std::chrono::milliseconds at_most = std::chrono::milliseconds(200));

 private:
  struct Line {
    LogLevel level;
    absl::Time time;
    std::variant<std::string, RequestRecord> content;  // the text, or the record that the log's thread formats
  };

  void Tell(absl::string_view event, absl::string_view message, std::initializer_list<LogField> fields);
  void Write(LogLevel level, absl::string_view event, absl::string_view message,
             std::initializer_list<LogField> fields);
  void Push(Line line);
  void WriteLoop();

  std::atomic<LogLevel> level_;
  std::atomic<bool> requests_;
  const size_t max_waiting_;
  FlightRecorder* const recorder_;
  const std::shared_ptr<LineOutput> output_;  // null: a logger was given
  const std::shared_ptr<spdlog::logger> logger_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::vector<Line> waiting_ ABSL_GUARDED_BY(mutex_);
  CondVar written_;
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t writes_ ABSL_GUARDED_BY(mutex_) = 0;  // that were begun, each of all that waited
  int64_t ends_ ABSL_GUARDED_BY(mutex_) = 0;    // that are over
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread writer_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_LOGS_LOG_H_
