#include "server/observe/records/crash_line.h"

#include <unistd.h>

#include <cerrno>

#include "server/observe/records/stage_fields.h"

namespace tensord::server {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

}  // namespace

void CrashLine::AddKey(absl::string_view key) {
  Put(size_ == 0 ? '{' : ',');
  Put('"');
  for (const char c : key) Put(c);
  Put('"');
  Put(':');
}

void CrashLine::Add(absl::string_view key, absl::string_view text) {
  if (!Fits(key.size() + 2 * text.size() + 6)) return;
  AddKey(key);
  Put('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') Put('\\');
    Put(c >= ' ' && c <= '~' ? c : '?');
  }
  Put('"');
}

void CrashLine::Add(absl::string_view key, int64_t number) {
  std::array<char, 20> digits;
  size_t count = 0;
  uint64_t rest = number < 0 ? uint64_t{0} - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  do {
    digits[count++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (!Fits(key.size() + count + 6)) return;
  AddKey(key);
  if (number < 0) Put('-');
  while (count > 0) Put(digits[--count]);
}

void CrashLine::WriteTo(int descriptor) {
  if (size_ == 0) Put('{');
  Put('}');
  Put('\n');
  for (size_t at = 0; at < size_;) {
    const ssize_t written = write(descriptor, bytes_.data() + at, size_ - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    at += static_cast<size_t>(written);
  }
}

void WriteCrashLine(const FlightEntry& entry, int descriptor) {
  CrashLine line;
  line.Add("unix_ns", entry.unix_ns);
  line.Add("level", "error");
  line.Add("event", "flight");
  if (entry.is_event) {
    line.Add("message", entry.text.view());
    return line.WriteTo(descriptor);
  }
  line.Add("method", Name(entry.method));
  line.Add("code", entry.code);
  if (!entry.reason.view().empty()) line.Add("reason", entry.reason.view());
  line.Add("request_id", entry.text.view());
  if (IsSet(entry.trace_id)) {
    std::array<char, 2 * sizeof(TraceId)> hex;
    for (size_t i = 0; i < entry.trace_id.size(); ++i) {
      hex[2 * i] = kHexDigits[entry.trace_id[i] >> 4];
      hex[2 * i + 1] = kHexDigits[entry.trace_id[i] & 15];
    }
    line.Add("trace_id", absl::string_view(hex.data(), hex.size()));
  }
  line.Add("tenant", entry.tenant.view());
  line.Add("fingerprint", entry.fingerprint.view());
  line.Add("device", entry.device.view());
  for (size_t i = 0; i < kNumStages; ++i) {
    if (entry.stage_us[i] >= 0) line.Add(kStageFields[i], entry.stage_us[i]);
  }
  line.Add("received_bytes", entry.received_bytes);
  line.Add("sent_bytes", entry.sent_bytes);
  line.Add("total_us", entry.total_ns / 1000);
  line.WriteTo(descriptor);
}

}  // namespace tensord::server
