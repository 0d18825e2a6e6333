#include "server/observe/logs/log.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/observe/logs/json_line.h"
#include "server/observe/logs/line_output.h"
#include "server/observe/records/flight_recorder.h"
#include "server/observe/records/stage_fields.h"

namespace tensord::server {
namespace {

constexpr auto kWriteEvery = std::chrono::milliseconds(100);
// How long the end of the log waits for its reader.
constexpr auto kLastWrite = std::chrono::milliseconds(200);

absl::string_view NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      break;
  }
  return "off";
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::err;
}

class OutputSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit OutputSink(std::shared_ptr<LineOutput> output) : output_(std::move(output)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    output_->Add({message.payload.data(), message.payload.size()});
  }
  void flush_() override { output_->Write(); }

  const std::shared_ptr<LineOutput> output_;
};

std::shared_ptr<spdlog::logger> Prepared(std::shared_ptr<spdlog::logger> logger,
                                         const std::shared_ptr<LineOutput>& output) {
  if (logger == nullptr) logger = std::make_shared<spdlog::logger>("tensord", std::make_shared<OutputSink>(output));
  logger->set_pattern("%v");
  logger->set_level(spdlog::level::trace);
  return logger;
}

// Puts times into words, and remembers those of the second, because most lines come many in one.
class TimeText {
 public:
  // "2026-11-24T12:34:56.123456Z"; good until the next call.
  absl::string_view Of(absl::Time time) {
    const int64_t micros = absl::ToUnixMicros(time);
    const int64_t second = absl::ToUnixSeconds(time);
    if (second != second_) {
      text_ = absl::FormatTime("%Y-%m-%dT%H:%M:%S.000000Z", time, absl::UTCTimeZone());
      second_ = second;
    }
    int64_t fraction = micros - second * 1'000'000;
    for (size_t i = 0; i < 6; ++i, fraction /= 10) text_[text_.size() - 2 - i] = static_cast<char>('0' + fraction % 10);
    return text_;
  }

 private:
  int64_t second_ = std::numeric_limits<int64_t>::min();
  std::string text_;
};

JsonLine StartLine(absl::string_view time, LogLevel level, absl::string_view event) {
  JsonLine line;
  line.Add("ts", time);
  line.Add("level", NameOf(level));
  line.Add("event", event);
  return line;
}

void AddText(absl::string_view key, absl::string_view text, JsonLine* line) {
  if (!text.empty()) line->Add(key, text);
}

std::string ToText(absl::string_view time, LogLevel level, const RequestRecord& record) {
  JsonLine line = StartLine(time, level, "request");
  line.Add("method", Name(record.method));
  AddText("request_id", record.request_id, &line);
  AddText("trace_id", ToHex(record.trace.context.trace_id), &line);
  line.Add("peer", record.peer);
  AddText("tenant", record.tenant, &line);
  line.Add("code", absl::StatusCodeToString(record.code));
  AddText("reason", record.reason, &line);
  AddText("message", record.message, &line);
  AddText("fingerprint", record.fingerprint, &line);
  AddText("cache", record.cache, &line);
  AddText("device", record.device, &line);
  for (size_t i = 0; i < kNumStages; ++i) {
    const absl::Duration time_taken = record.stages.Of(static_cast<Stage>(i)).value_or(absl::ZeroDuration());
    // Most calls spend nothing worth a field in most of them.
    if (const int64_t micros = absl::ToInt64Microseconds(time_taken); micros > 0) line.Add(kStageFields[i], micros);
  }
  line.Add("received_bytes", record.received_bytes);
  line.Add("sent_bytes", record.sent_bytes);
  line.Add("total_us", absl::ToInt64Microseconds(record.total));
  return std::move(line).Take();
}

}  // namespace

LogLevel LogLevelFromName(absl::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kOff;
}

Log::Log(const Options& options, std::shared_ptr<spdlog::logger> logger)
    : level_(options.level),
      requests_(options.requests),
      max_waiting_(options.max_waiting),
      recorder_(options.recorder),
      output_(logger == nullptr ? std::make_shared<LineOutput>(options.descriptor) : nullptr),
      logger_(Prepared(std::move(logger), output_)),
      writer_([this] { WriteLoop(); }) {}

Log::~Log() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (output_ != nullptr) output_->EndBy(std::chrono::steady_clock::now() + kLastWrite);
  wake_.SignalAll();
  writer_.join();
}

void Log::SetLevel(LogLevel level) {
  const auto tell = [&] { Event(LogLevel::kInfo, "log level", NameOf(level)); };
  const bool is_told_before = Logs(LogLevel::kInfo);
  if (is_told_before) tell();
  level_.store(level, std::memory_order_relaxed);
  if (!is_told_before) tell();
}

void Log::Event(LogLevel level, absl::string_view event, absl::string_view message,
                std::initializer_list<LogField> fields) {
  if (level > LogLevel::kDebug) Tell(event, message, fields);
  if (Logs(level)) Write(level, event, message, fields);
}

void Log::Audit(LogLevel level, absl::string_view event, absl::string_view message,
                std::initializer_list<LogField> fields) {
  if (level >= LogLevel::kWarning) Tell(event, message, fields);
  if (Logs(LogLevel::kError)) Write(level, event, message, fields);
}

// The recorder.
void Log::Tell(absl::string_view event, absl::string_view message, std::initializer_list<LogField> fields) {
  if (recorder_ == nullptr) return;
  std::string text(message);
  for (const LogField& field : fields) {
    if (!field.text.empty()) absl::StrAppend(&text, text.empty() ? "" : " ", field.key, "=", field.text);
  }
  recorder_->Event(event, text);
}

void Log::Write(LogLevel level, absl::string_view event, absl::string_view message,
                std::initializer_list<LogField> fields) {
  const absl::Time now = absl::Now();
  JsonLine line = StartLine(TimeText().Of(now), level, event);
  AddText("message", message, &line);
  for (const LogField& field : fields) AddText(field.key, field.text, &line);
  Push({level, now, std::move(line).Take()});
}

void Log::Request(RequestRecord record) {
  const LogLevel level = record.code == absl::StatusCode::kInternal ? LogLevel::kError : LogLevel::kInfo;
  if (!Logs(level) || (level == LogLevel::kInfo && !requests_)) return;
  record.segments = {};  // which no line tells of, and which are many
  Push({level, absl::Now(), std::move(record)});
}

int64_t Log::dropped_lines() const {
  MutexLock lock(&mutex_);
  return dropped_ + (output_ == nullptr ? 0 : output_->lost_lines());
}

void Log::Push(Line line) {
  const bool urgent = line.level >= LogLevel::kWarning;
  {
    MutexLock lock(&mutex_);
    if (waiting_.size() >= max_waiting_) {
      ++dropped_;
      return;
    }
    waiting_.push_back(std::move(line));
    urgent_ |= urgent;
  }
  if (urgent) wake_.Signal();
}

void Log::Flush(std::chrono::milliseconds at_most) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  MutexLock lock(&mutex_);
  const int64_t write = writes_ + 1;
  urgent_ = true;
  wake_.Signal();
  while (ends_ < write && !stopping_ && written_.WaitUntil(&mutex_, until)) {
  }
}

void Log::WriteLoop() {
  std::vector<Line> lines;
  TimeText time_text;
  bool stopping = false;
  while (!stopping) {
    {
      MutexLock lock(&mutex_);
      const auto until = std::chrono::steady_clock::now() + kWriteEvery;
      while (!stopping_ && !urgent_ && wake_.WaitUntil(&mutex_, until)) {
      }
      std::swap(lines, waiting_);
      ++writes_;
      urgent_ = false;
      stopping = stopping_;
    }
    for (const Line& line : lines) {
      const auto write = [&](const std::string& text) {
        logger_->log(spdlog::source_loc{}, SpdlogLevel(line.level), spdlog::string_view_t(text));
      };
      if (const auto* text = std::get_if<std::string>(&line.content)) {
        write(*text);
      } else {
        write(ToText(time_text.Of(line.time), line.level, std::get<RequestRecord>(line.content)));
      }
    }
    if (!lines.empty()) logger_->flush();
    lines.clear();
    {
      MutexLock lock(&mutex_);
      ++ends_;
    }
    written_.SignalAll();
  }
}

}  // namespace tensord::server
