#ifndef TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_RING_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_RING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "server/observe/records/flight_entry.h"

namespace tensord::server {

// The last entries, a fixed number of them. Writers take places by turns and wait for nobody; if two meet in one place,
// which takes a whole round while one of them writes, the later entry is lost. Readers see whole entries or none, and
// take no lock, so that a signal handler may read. Thread-safe.
class FlightRing {
 public:
  explicit FlightRing(size_t size);
  FlightRing(const FlightRing&) = delete;
  FlightRing& operator=(const FlightRing&) = delete;

  void Add(const FlightEntry& entry);

  size_t size() const { return size_; }
  // Returns the number of all entries ever added; the last of them have the turns below it.
  uint64_t turns() const { return next_.load(std::memory_order_acquire); }
  // Reads the entry of that turn; false if it is gone, or not whole.
  bool Read(uint64_t turn, FlightEntry* entry) const;
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  static_assert(std::is_trivially_copyable_v<FlightEntry>);
  static constexpr size_t kWords = (sizeof(FlightEntry) + sizeof(uint64_t) - 1) / sizeof(uint64_t);

  // A sequence lock: `turn` is twice the turn plus 2 of the entry that is there, odd while it is written. All of it is
  // read and written by std::atomic_ref alone, so that zeroed memory is an array of empty places.
  struct Slot {
    uint64_t turn;
    std::array<uint64_t, kWords> words;
  };
  struct Free {
    void operator()(Slot* slots) const { std::free(slots); }
  };

  const size_t size_;
  // The system's zeroed pages, which take no memory before their first use.
  const std::unique_ptr<Slot[], Free> slots_;
  std::atomic<uint64_t> next_{0};
  std::atomic<int64_t> lost_{0};
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_RING_H_
