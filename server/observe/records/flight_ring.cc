#include "server/observe/records/flight_ring.h"

#include <cstring>

namespace tensord::server {

void FlightRing::Add(const FlightEntry& entry) {
  if (size_ == 0) return;
  const uint64_t turn = next_.fetch_add(1, std::memory_order_acq_rel);
  Slot& slot = slots_[turn % size_];
  uint64_t before = slot.turn.load(std::memory_order_relaxed);
  const uint64_t done = 2 * turn + 2;
  // A writer of a later round that was faster has the place.
  if (before % 2 != 0 || before > done || !slot.turn.compare_exchange_strong(before, done - 1)) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::array<uint64_t, kWords> words{};
  std::memcpy(words.data(), &entry, sizeof(entry));
  // Each store is a release: a reader that sees one of the words sees that the entry is being written.
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.turn.store(done, std::memory_order_release);
}

bool FlightRing::Read(uint64_t turn, FlightEntry* entry) const {
  if (size_ == 0) return false;
  const Slot& slot = slots_[turn % size_];
  const uint64_t done = 2 * turn + 2;
  if (slot.turn.load(std::memory_order_acquire) != done) return false;
  std::array<uint64_t, kWords> words;
  for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
  if (slot.turn.load(std::memory_order_relaxed) != done) return false;
  std::memcpy(entry, words.data(), sizeof(*entry));
  return true;
}

}  // namespace tensord::server
