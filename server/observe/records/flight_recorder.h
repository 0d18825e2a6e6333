#ifndef TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_RECORDER_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/config/live_value.h"
#include "server/observe/records/flight_entry.h"
#include "server/observe/records/flight_ring.h"
#include "server/observe/records/request_record.h"

namespace tensord::server {

// The last calls and events of the server, in memory of a fixed size. Refused or slow calls, and events, have a ring of
// their own, so that the many calls that go well do not push them out. Thread-safe; recording takes no lock.
class FlightRecorder {
 public:
  struct Options {
    int64_t entries = 4096;  // of the ring of all other calls; a quarter of it for the notable ones
    absl::Duration slow = absl::Seconds(1);
  };

  explicit FlightRecorder(const Options& options);

  // Sets the time from which a call counts as slow.
  void SetSlow(absl::Duration slow) { slow_ = slow; }
  absl::Duration slow() const { return slow_; }

  void Request(const RequestRecord& record);
  void Event(absl::string_view event, absl::string_view message);

  struct Dump {
    std::vector<FlightEntry> entries;  // the oldest first
    int64_t lost = 0;
  };
  // Returns the last `limit` entries.
  Dump Read(size_t limit, bool notable_only) const;

  // Writes the last entries to the descriptor, one JSON object a line. Safe in a signal handler.
  void WriteTo(int descriptor) const;

 private:
  LiveDuration slow_;
  FlightRing usual_;
  FlightRing notable_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_RECORDER_H_
