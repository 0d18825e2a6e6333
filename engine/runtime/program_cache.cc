#include "engine/runtime/program_cache.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/refusal.h"

namespace tensord {

namespace {

int64_t BytesOf(const ProgramKey& key, const CompiledProgram& program) {
  return program.size_bytes() + static_cast<int64_t>(key.bytes.size());
}

}  // namespace

CompiledProgramPtr ProgramCache::UseLocked(Entries::iterator entry) {
  entries_.splice(entries_.begin(), entries_, entry);
  const int64_t bytes = BytesOf(*entry->key, *entry->program);
  if (bytes != entry->bytes) {
    stats_.bytes += bytes - entry->bytes;
    entry->bytes = bytes;
    EvictLocked();
  }
  return entry->program;
}

CompiledProgramPtr ProgramCache::FindLocked(const ProgramKey& key) {
  const auto found = index_.find(PlaceOf(key.fingerprint));
  if (found == index_.end()) return nullptr;
  for (const Entries::iterator entry : found->second) {
    if (entry->key->bytes != key.bytes) continue;
    return UseLocked(entry);
  }
  return nullptr;
}

absl::StatusOr<CompiledProgramPtr> ProgramCache::Find(const Fingerprint& fingerprint) {
  MutexLock lock(&mutex_);
  if (ambiguous_.contains(fingerprint)) {
    return Refuse(Refusal::kFingerprintAmbiguous,
                  absl::StrCat("two programs have the fingerprint \"", fingerprint.ToHex(),
                               "\"; send the graph with every call"));
  }
  const auto found = index_.find(PlaceOf(fingerprint));
  if (found != index_.end()) {
    for (const Entries::iterator entry : found->second) {
      if (entry->key->fingerprint != fingerprint) continue;
      return UseLocked(entry);
    }
  }
  return Refuse(Refusal::kProgramNotFound, absl::StrCat("no program here has the fingerprint \"", fingerprint.ToHex(),
                                                        "\"; compile the graph again and repeat the call"));
}

void ProgramCache::GetOrCompile(ProgramKey key, CompileFn compile, DoneFn done) {
  CompiledProgramPtr hit;
  bool refused = false;
  {
    MutexLock lock(&mutex_);
    hit = FindLocked(key);
    if (hit != nullptr) {
      ++stats_.hits;
    } else {
      const Fingerprint place = PlaceOf(key.fingerprint);
      std::vector<Flight>& flights = flights_[place];
      const auto flight =
          std::find_if(flights.begin(), flights.end(), [&key](const Flight& f) { return f.key->bytes == key.bytes; });
      if (flight != flights.end()) {
        flight->waiting.push_back(std::move(done));
        ++stats_.joined;
        return;
      }
      const auto shared_key = std::make_shared<const ProgramKey>(std::move(key));
      flights.push_back({.key = shared_key, .waiting = {}});
      flights.back().waiting.push_back(std::move(done));
      const auto work = [this, shared_key, compile = std::move(compile)] {
        const absl::Time start = absl::Now();
        absl::StatusOr<CompiledProgramPtr> program = [&]() -> absl::StatusOr<CompiledProgramPtr> {
          try {
            return compile();
          } catch (const std::exception& e) {  // a library ran out of memory; the pool's thread must live on
            return Refuse(Refusal::kInternal, absl::StrCat("the compiler failed: ", e.what()));
          }
        }();
        Land(shared_key, std::move(program), absl::Now() - start);
      };
      if (pool_->Submit(work)) return;
      refused = true;
      done = std::move(flights_[place].back().waiting.front());
      flights_[place].pop_back();
      if (flights_[place].empty()) flights_.erase(place);
    }
  }
  if (refused) {
    done(Refuse(Refusal::kQueueFull, "the compiler's queue is full; try again later"));
  } else {
    done(Found{.program = std::move(hit), .source = Source::kMemory});
  }
}

void ProgramCache::Land(const KeyPtr& key, absl::StatusOr<CompiledProgramPtr> program, absl::Duration compile_time) {
  std::vector<DoneFn> waiting;
  {
    MutexLock lock(&mutex_);
    if (program.ok()) {
      ++stats_.compiled;
      InsertLocked(key, *program);
    } else {
      ++stats_.failed;
    }
    const Fingerprint place = PlaceOf(key->fingerprint);
    std::vector<Flight>& flights = flights_[place];
    const auto flight = std::find_if(flights.begin(), flights.end(), [&key](const Flight& f) { return f.key == key; });
    waiting = std::move(flight->waiting);
    flights.erase(flight);
    if (flights.empty()) flights_.erase(place);
  }
  Source source = Source::kCompiled;
  for (DoneFn& done : waiting) {
    if (program.ok()) {
      done(Found{.program = *program, .source = source, .compile_time = compile_time});
    } else {
      done(program.status());
    }
    source = Source::kJoined;
  }
}

void ProgramCache::InsertLocked(KeyPtr key, CompiledProgramPtr program) {
  const int64_t bytes = BytesOf(*key, *program);
  std::vector<Entries::iterator>& place = index_[PlaceOf(key->fingerprint)];
  for (const Entries::iterator entry : place) {
    if (entry->key->fingerprint == key->fingerprint) ambiguous_.insert(key->fingerprint);
  }
  entries_.push_front({.key = std::move(key), .program = std::move(program), .bytes = bytes});
  place.push_back(entries_.begin());
  stats_.bytes += bytes;
  ++stats_.entries;
  EvictLocked();
}

void ProgramCache::EvictLocked() {
  // The newest stays even where it alone is too large: its caller is about to run it.
  while (stats_.bytes > options_.max_bytes && entries_.size() > 1) {
    const Entries::iterator victim = std::prev(entries_.end());
    const Fingerprint victims_place = PlaceOf(victim->key->fingerprint);
    std::vector<Entries::iterator>& same = index_[victims_place];
    same.erase(std::find(same.begin(), same.end(), victim));
    if (same.empty()) index_.erase(victims_place);
    stats_.bytes -= victim->bytes;
    --stats_.entries;
    ++stats_.evictions;
    entries_.erase(victim);
  }
}

ProgramCache::Stats ProgramCache::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace tensord
