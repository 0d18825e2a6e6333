#ifndef TENSORD_SERVER_OBSERVE_LOGS_LINE_OUTPUT_H_
#define TENSORD_SERVER_OBSERVE_LOGS_LINE_OUTPUT_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

// The output of lines: a descriptor, which it does not own. Waits for a stalled reader, until the time to end that it
// is told, and counts the lost lines: of a full disk, a closed pipe, or for want of time. Confined to one thread but
// for functions that say otherwise.
class LineOutput {
 public:
  explicit LineOutput(int descriptor) : descriptor_(descriptor) {}
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;

  // Writes a line, cut if it is too long, if that can be done without waiting; true if it was written.
  static bool WriteNow(int descriptor, absl::string_view line);

  // Without its end.
  void Add(absl::string_view line);
  // Writes the lines that were added.
  void Write();

  // Sets the time after which nothing waits for a reader. Thread-safe.
  void EndBy(std::chrono::steady_clock::time_point time) { end_ = time.time_since_epoch().count(); }
  // Thread-safe.
  int64_t lost_lines() const { return lost_.load(std::memory_order_relaxed); }

 private:
  // Returns false if the time to end has come.
  bool WaitUntilWritable() const;
  // Writes as much of the part as is taken.
  size_t WritePart(absl::string_view part) const;

  const int descriptor_;
  std::string lines_;
  bool torn_ = false;  // the last line was taken in part
  std::atomic<int64_t> lost_{0};
  std::atomic<int64_t> end_{std::numeric_limits<int64_t>::max()};
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_LOGS_LINE_OUTPUT_H_
