#ifndef TENSORD_SERVER_OBSERVE_LOG_H_
#define TENSORD_SERVER_OBSERVE_LOG_H_

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
#include "server/observe/request_record.h"

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

// The server's log: JSON objects, one a line, on standard error. Lines are handed to a thread of the log, which writes
// them several at a time, because waking it for each would cost a call more than the line itself; a warning or an error
// is written at once. That thread also puts the lines of calls into words, which no caller has to wait for. A reader
// that stalls loses lines, counted, and never holds up a call; so does one that does not take them. Thread-safe. The
// destructor writes what is left, unless the reader takes too long.
class Log {
 public:
  struct Options {
    LogLevel level = LogLevel::kInfo;
    bool requests = true;  // one line a call
    size_t max_waiting = 16384;
    FlightRecorder* recorder = nullptr;  // is told of every event, whatever the level; outlives the log; may be null
    int descriptor = 2;                  // that it writes to: standard error
  };

  // Writes to `logger`, which only the log's thread uses; null: to the descriptor.
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

  // From now on. The level tells of its change in a line, unless both, the old and the new one, leave such lines out.
  void SetLevel(LogLevel level);
  void SetRequests(bool requests) { requests_.store(requests, std::memory_order_relaxed); }

  // An event of the server's own life: "listening", "draining".
  void Event(LogLevel level, absl::string_view event, absl::string_view message,
             std::initializer_list<LogField> fields = {});
  // A line that operators keep: written whatever the level is, unless that is kOff. The flight recorder has warnings of
  // it; what is less is a call, which it has as that, and one who looks at it all the time must not push events out.
  void Audit(LogLevel level, absl::string_view event, absl::string_view message,
             std::initializer_list<LogField> fields);
  void Request(RequestRecord record);

  int64_t dropped_lines() const;
  // Waits until what was told before is written, but not longer than that.
  void Flush(std::chrono::milliseconds at_most = std::chrono::milliseconds(200));

 private:
  struct Line {
    LogLevel level;
    absl::Time time;
    std::variant<std::string, RequestRecord> content;  // the text, or what it will be made of
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

#endif  // TENSORD_SERVER_OBSERVE_LOG_H_
