#ifndef TENSORD_SERVER_OBSERVE_LOGS_LINE_OUTPUT_H_
#define TENSORD_SERVER_OBSERVE_LOGS_LINE_OUTPUT_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

// Where lines go: a descriptor, which it does not own. Waits for a reader that stalls, until it is told by when to end,
// and counts the lines that were not taken: by a disk that is full, a pipe that is closed, or in time. Confined to one
// thread but for what says otherwise.
class LineOutput {
 public:
  explicit LineOutput(int descriptor) : descriptor_(descriptor) {}
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;

  // Writes a line, cut where it is too long, if that can be done without waiting; whether it was.
  static bool WriteNow(int descriptor, absl::string_view line);

  // Without its end.
  void Add(absl::string_view line);
  // Writes the lines that were added.
  void Write();

  // By then nothing waits for a reader any more. Thread-safe.
  void EndBy(std::chrono::steady_clock::time_point time) { end_ = time.time_since_epoch().count(); }
  // Thread-safe.
  int64_t lost_lines() const { return lost_.load(std::memory_order_relaxed); }

 private:
  // False where the time to end has come.
  bool WaitUntilWritable() const;
  // As much of it as is taken.
  size_t WritePart(absl::string_view part) const;

  const int descriptor_;
  std::string lines_;
  bool torn_ = false;  // the last line was taken in part
  std::atomic<int64_t> lost_{0};
  std::atomic<int64_t> end_{std::numeric_limits<int64_t>::max()};
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_LOGS_LINE_OUTPUT_H_
