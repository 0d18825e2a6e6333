#include "engine/base/program_at_work.h"

#include <cstring>

#include "engine/base/alternate_stack.h"

namespace tensord {
namespace {

// Threads that work for programs at once; further ones are not written down. The thread pool's only help.
constexpr size_t kMostThreads = 1024;

WorkPlace places[kMostThreads];  // what a signal handler may reach is static

// Without constructor: a handler reads it.
thread_local const WorkPlace* t_work = nullptr;

// The place of a thread, from its first program to its end.
class PlaceOfThread {
 public:
  PlaceOfThread() {
    for (WorkPlace& place : places) {
      if (place.taken.load(std::memory_order_relaxed) || place.taken.exchange(true)) continue;
      place_ = &place;
      return;
    }
  }
  ~PlaceOfThread() {
    if (place_ != nullptr) place_->taken.store(false);
  }
  WorkPlace* get() const { return place_; }

 private:
  WorkPlace* place_ = nullptr;
  AlternateStack stack_;
};

// Each store releases those before it: a reader of one of these words sees afterwards, in the counter, that the place
// was being changed.
void Write(const Fingerprint& fingerprint, ProgramWork work, WorkPlace* place) {
  const uint64_t changes = place->changes.load(std::memory_order_relaxed);
  place->changes.store(changes + 1, std::memory_order_relaxed);
  for (size_t i = 0; i < place->fingerprint.size(); ++i) {
    uint64_t word;
    std::memcpy(&word, fingerprint.bytes().data() + i * sizeof(word), sizeof(word));
    place->fingerprint[i].store(word, std::memory_order_release);
  }
  place->work.store(static_cast<uint8_t>(1 + static_cast<uint8_t>(work)), std::memory_order_release);
  place->changes.store(changes + 2, std::memory_order_release);
}

// Reads a place. False if it is empty, or changes meanwhile: the signal may have interrupted the very thread that
// changes it, and to wait would have no end.
bool See(const WorkPlace& place, WorkSeen* seen) {
  const uint64_t changes = place.changes.load(std::memory_order_acquire);
  if (changes % 2 != 0) return false;
  const uint8_t work = place.work.load(std::memory_order_acquire);
  if (work == 0) return false;
  std::array<uint8_t, Fingerprint::kBytes> bytes;
  for (size_t i = 0; i < place.fingerprint.size(); ++i) {
    const uint64_t word = place.fingerprint[i].load(std::memory_order_acquire);
    std::memcpy(bytes.data() + i * sizeof(word), &word, sizeof(word));
  }
  if (place.changes.load(std::memory_order_relaxed) != changes) return false;
  seen->fingerprint = Fingerprint::FromBytes(bytes);
  seen->work = static_cast<ProgramWork>(work - 1);
  return true;
}

}  // namespace

absl::string_view Name(ProgramWork work) {
  switch (work) {
    case ProgramWork::kCompile:
      return "compile";
    case ProgramWork::kRestore:
      return "restore";
    case ProgramWork::kRun:
      break;
  }
  return "run";
}

ProgramAtWork::ProgramAtWork(const Fingerprint& fingerprint, ProgramWork work) {
  if (t_work != nullptr) return;
  thread_local const PlaceOfThread place;
  place_ = place.get();
  if (place_ == nullptr) return;
  Write(fingerprint, work, place_);
  std::atomic_signal_fence(std::memory_order_release);
  t_work = place_;
}

ProgramAtWork::~ProgramAtWork() {
  if (place_ == nullptr) return;
  t_work = nullptr;
  std::atomic_signal_fence(std::memory_order_release);
  place_->work.store(0, std::memory_order_release);
}

const WorkPlace* WorkOfThisThread() { return t_work; }

HelpAtWork::HelpAtWork(const WorkPlace* work) : before_(t_work) { t_work = work; }

HelpAtWork::~HelpAtWork() { t_work = before_; }

bool SeeWorkOfThisThread(WorkSeen* seen) { return t_work != nullptr && See(*t_work, seen); }

bool SeeNextWork(size_t* next, WorkSeen* seen) {
  while (*next < kMostThreads) {
    if (See(places[(*next)++], seen)) return true;
  }
  return false;
}

}  // namespace tensord
