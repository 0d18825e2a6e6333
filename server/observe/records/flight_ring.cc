#include "server/observe/records/flight_ring.h"

#include <cstring>
#include <new>

namespace tensord::server {
namespace {

using Word = std::atomic_ref<uint64_t>;
static_assert(Word::is_always_lock_free && Word::required_alignment <= alignof(uint64_t));

}  // namespace

FlightRing::FlightRing(size_t size)
    : size_(size), slots_(size == 0 ? nullptr : static_cast<Slot*>(std::calloc(size, sizeof(Slot)))) {
  if (size != 0 && slots_ == nullptr) throw std::bad_alloc();
}

void FlightRing::Add(const FlightEntry& entry) {
  if (size_ == 0) return;
  const uint64_t turn = next_.fetch_add(1, std::memory_order_acq_rel);
  Slot& slot = slots_[turn % size_];
  const Word place(slot.turn);
  uint64_t before = place.load(std::memory_order_relaxed);
  const uint64_t done = 2 * turn + 2;
  // A writer of a later round that was faster has the place.
  if (before % 2 != 0 || before > done || !place.compare_exchange_strong(before, done - 1)) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::array<uint64_t, kWords> words{};
  std::memcpy(words.data(), &entry, sizeof(entry));
  // Each store is a release: a reader that sees one of the words sees that the entry is being written.
  for (size_t i = 0; i < kWords; ++i) Word(slot.words[i]).store(words[i], std::memory_order_release);
  place.store(done, std::memory_order_release);
}

bool FlightRing::Read(uint64_t turn, FlightEntry* entry) const {
  if (size_ == 0) return false;
  Slot& slot = slots_[turn % size_];
  const Word place(slot.turn);
  const uint64_t done = 2 * turn + 2;
  if (place.load(std::memory_order_acquire) != done) return false;
  std::array<uint64_t, kWords> words;
  for (size_t i = 0; i < kWords; ++i) words[i] = Word(slot.words[i]).load(std::memory_order_acquire);
  if (place.load(std::memory_order_relaxed) != done) return false;
  std::memcpy(entry, words.data(), sizeof(*entry));
  return true;
}

}  // namespace tensord::server
