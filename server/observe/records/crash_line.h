#ifndef TENSORD_SERVER_OBSERVE_RECORDS_CRASH_LINE_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_CRASH_LINE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/observe/records/flight_entry.h"

namespace tensord::server {

// A JSON object on one line, built in a place of its own without memory from the heap, locks or the locale, so that a
// signal handler may. Fields that no longer fit are left out. Thread-compatible.
class CrashLine {
 public:
  // Anything but printable ASCII becomes '?'.
  void Add(absl::string_view key, absl::string_view text);
  void Add(absl::string_view key, int64_t number);
  // Writes the line, closed, once.
  void WriteTo(int descriptor);

 private:
  void AddKey(absl::string_view key);
  bool Fits(size_t more) const { return size_ + more + 2 <= bytes_.size(); }
  void Put(char c) { bytes_[size_++] = c; }

  std::array<char, 2048> bytes_;
  size_t size_ = 0;
};

// An entry of the flight recorder as a line of the log with level error.
void WriteCrashLine(const FlightEntry& entry, int descriptor);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_CRASH_LINE_H_
