#include "engine/runtime/programs/program_cache.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/steady_time.h"
#include "engine/runtime/compile/renaming.h"

namespace tensord {

namespace {

int64_t BytesOf(const ProgramKey& key, const CompiledProgram& program) {
  return program.size_bytes() + static_cast<int64_t>(key.bytes.size());
}

constexpr int64_t kMeasuredShare = 32;  // of the bound: the cache may be over it by 3 %, and measures seldom

// A library may run out of memory; the pool's thread must live on.
template <typename Result>
absl::StatusOr<Result> Guarded(const std::function<absl::StatusOr<Result>()>& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    return Refuse(Refusal::kInternal, absl::StrCat("the compiler failed: ", e.what()));
  }
}

}  // namespace

void ProgramCache::MeasureLocked(Entry* entry) {
  const int64_t bytes = BytesOf(*entry->key, *entry->program);
  stats_.bytes += bytes - entry->bytes;
  entry->bytes = bytes;
}

void ProgramCache::MeasureGrownLocked() {
  if (options_.sized == nullptr) return;
  const int64_t bytes = options_.sized->kept_bytes();
  if (bytes - measured_sized_bytes_ <= max_bytes_ / kMeasuredShare) {
    measured_sized_bytes_ = std::min(measured_sized_bytes_, bytes);
    return;
  }
  measured_sized_bytes_ = bytes;
  for (Entry& entry : entries_) MeasureLocked(&entry);
}

ProgramCache::Found ProgramCache::UseLocked(Entries::iterator entry) {
  entries_.splice(entries_.begin(), entries_, entry);
  entry->last_used = options_.steady_now();
  MeasureLocked(&*entry);
  MeasureGrownLocked();
  EvictLocked();
  const bool from_disk = std::exchange(entry->is_new_from_disk, false);
  return {.program = entry->program, .source = from_disk ? Source::kDisk : Source::kMemory};
}

ProgramCache::Entries::iterator ProgramCache::LookUpLocked(const ProgramKey& key) {
  const auto found = index_.find(PlaceOf(key.fingerprint));
  if (found == index_.end()) return entries_.end();
  for (const Entries::iterator entry : found->second) {
    if (entry->key->bytes == key.bytes) return entry;
  }
  return entries_.end();
}

absl::StatusOr<ProgramCache::Found> ProgramCache::FindLocked(const Fingerprint& fingerprint) {
  if (ambiguous_.contains(fingerprint)) {
    return Refuse(Refusal::kFingerprintAmbiguous,
                  absl::StrCat("two programs have the fingerprint \"", fingerprint.ToHex(),
                               "\"; send the graph with every call"));
  }
  const auto found = index_.find(PlaceOf(fingerprint));
  if (found != index_.end()) {
    for (const Entries::iterator entry : found->second) {
      if (entry->key->fingerprint == fingerprint) return UseLocked(entry);
    }
  }
  return RefuseUnknown(fingerprint);
}

absl::Status ProgramCache::RefuseUnknown(const Fingerprint& fingerprint) {
  return Refuse(Refusal::kProgramNotFound, absl::StrCat("no program here has the fingerprint \"", fingerprint.ToHex(),
                                                        "\"; compile the graph again and repeat the call"));
}

absl::StatusOr<CompiledProgramPtr> ProgramCache::Find(const Fingerprint& fingerprint) {
  MutexLock lock(&mutex_);
  absl::StatusOr<Found> found = FindLocked(fingerprint);
  if (!found.ok()) return std::move(found).status();
  if (found->source == Source::kDisk) ++stats_.restored;
  return std::move(found->program);
}

ProgramCache::LeaveFn ProgramCache::JoinLocked(const FlightPtr& flight, const std::string& tenant, Waiting waiting) {
  flight->work->QueueFor(tenant, pool_->SubmitFor(tenant)).IgnoreError();  // it is queued, for who began it
  const uint64_t id = flight->waiting.Join(std::move(waiting));
  return [this, joined = std::weak_ptr<Flight>(flight), id] {
    if (const FlightPtr flight = joined.lock(); flight != nullptr) Leave(flight, id);
  };
}

absl::Status ProgramCache::BeginLocked(const FlightPtr& flight, const std::string& tenant, std::function<void()> work) {
  flight->work = std::make_shared<QueuedWork>(std::move(work));
  const absl::Status queued = flight->work->QueueFor(tenant, pool_->SubmitFor(tenant));
  if (queued.ok()) return queued;
  flight->work->Abandon();
  EndLocked(flight);
  return queued;
}

void ProgramCache::Leave(const FlightPtr& flight, uint64_t waiting) {
  std::optional<Waiting> gone;  // without the lock: it may hold a graph
  {
    MutexLock lock(&mutex_);
    gone = flight->waiting.Leave(waiting);
    if (!gone.has_value()) return;  // it has landed
    if (!flight->waiting.empty()) return;
    EndLocked(flight);
    ++stats_.abandoned;
  }
  flight->work->Abandon();
}

std::vector<ProgramCache::Waiting> ProgramCache::EndLocked(const FlightPtr& flight) {
  if (flight->key == nullptr) {
    const auto restoring = restoring_.find(flight->fingerprint);
    if (restoring != restoring_.end() && restoring->second == flight) restoring_.erase(restoring);
  } else if (const auto flights = flights_.find(PlaceOf(flight->key->fingerprint)); flights != flights_.end()) {
    std::erase(flights->second, flight);
    if (flights->second.empty()) flights_.erase(flights);
  }
  return flight->waiting.TakeAll();
}

ProgramCache::LeaveFn ProgramCache::GetOrCompile(ProgramKey key, CompileFn compile, DoneFn done, NamesFn names,
                                                 const std::string& tenant) {
  absl::StatusOr<Found> answer;
  std::vector<std::string> refused_names;
  {
    MutexLock lock(&mutex_);
    const Entries::iterator entry = LookUpLocked(key);
    const RefusedGraphs::Refused* const refused =
        entry == entries_.end() ? refused_.Find(key, options_.steady_now()) : nullptr;
    if (entry != entries_.end()) {
      answer = UseLocked(entry);
      ++(answer->source == Source::kDisk ? stats_.restored : stats_.hits);
    } else if (refused != nullptr) {
      ++stats_.negative;
      answer = refused->status;
      refused_names = refused->names;
    } else {
      std::vector<FlightPtr>& flights = flights_[PlaceOf(key.fingerprint)];
      const auto joined = std::find_if(flights.begin(), flights.end(),
                                       [&key](const FlightPtr& f) { return f->key->bytes == key.bytes; });
      if (joined != flights.end()) {
        ++stats_.joined;
        return JoinLocked(*joined, tenant, {.done = std::move(done), .names = std::move(names)});
      }
      const auto flight = std::make_shared<Flight>();
      flight->key = std::make_shared<const ProgramKey>(std::move(key));
      flights.push_back(flight);
      const absl::Status begun = BeginLocked(
          flight, tenant,
          [this, flight, compile = std::move(compile), names = std::move(names)] { Fly(flight, compile, names); });
      if (begun.ok()) return JoinLocked(flight, tenant, {.done = std::move(done), .leads = true});  // in its own names
      answer = begun;
    }
  }
  if (!answer.ok() && names && !refused_names.empty()) answer = Renaming(refused_names, names()).Of(answer.status());
  done(std::move(answer));
  return nullptr;
}

void ProgramCache::Fly(const FlightPtr& flight, const CompileFn& compile, const NamesFn& names) {
  const absl::Time start = SteadyNow();
  std::vector<std::string> own_names;
  absl::StatusOr<CompiledProgramPtr> program = Guarded<CompiledProgramPtr>([&] {
    if (names) own_names = names();
    return compile();
  });
  Land(flight, std::move(program), SteadyNow() - start, std::move(own_names));
}

void ProgramCache::Land(const FlightPtr& flight, absl::StatusOr<CompiledProgramPtr> program,
                        absl::Duration compile_time, std::vector<std::string> names) {
  std::vector<Waiting> waiting;
  CompiledProgramPtr shared;
  {
    MutexLock lock(&mutex_);
    // A compilation that was broken off may look as if it had succeeded, or failed.
    if (flight->waiting.empty()) return;
    if (program.ok()) {
      ++stats_.compiled;
      shared = InsertLocked(flight->key, *program);
    } else {
      ++stats_.failed;
      refused_.Add(flight->key, program.status(), names, options_.steady_now());
    }
    waiting = EndLocked(flight);
  }
  for (Waiting& waiter : waiting) {
    if (!program.ok()) {
      waiter.done(waiter.names ? Renaming(names, waiter.names()).Of(program.status()) : program.status());
    } else if (waiter.leads) {
      // The program that it compiled has its names, also if an equal program came back from disk meanwhile.
      waiter.done(Found{.program = *program, .source = Source::kCompiled, .compile_time = compile_time});
    } else {
      waiter.done(Found{.program = shared, .source = Source::kJoined, .compile_time = compile_time});
    }
  }
}

ProgramCache::LeaveFn ProgramCache::FindOrRestore(const Fingerprint& fingerprint, RestoreFn restore, DoneFn done,
                                                  const std::string& tenant) {
  absl::StatusOr<Found> answer;
  {
    MutexLock lock(&mutex_);
    absl::StatusOr<Found> here = FindLocked(fingerprint);
    if (here.ok() || !IsRefusal(here.status(), Refusal::kProgramNotFound)) {
      if (here.ok() && here->source == Source::kDisk) ++stats_.restored;
      answer = std::move(here);
    } else {
      const auto [joined, is_new] = restoring_.try_emplace(fingerprint);
      if (!is_new) return JoinLocked(joined->second, tenant, {.done = std::move(done)});
      const auto flight = std::make_shared<Flight>();
      joined->second = flight;
      flight->fingerprint = fingerprint;
      const absl::Status begun = BeginLocked(flight, tenant, [this, flight, restore = std::move(restore)] {
        const absl::Time start = SteadyNow();
        absl::StatusOr<Restored> restored = Guarded<Restored>(restore);
        LandRestored(flight, std::move(restored), SteadyNow() - start);
      });
      if (begun.ok()) return JoinLocked(flight, tenant, {.done = std::move(done)});
      answer = begun;
    }
  }
  done(std::move(answer));
  return nullptr;
}

void ProgramCache::LandRestored(const FlightPtr& flight, absl::StatusOr<Restored> restored, absl::Duration time) {
  std::vector<Waiting> waiting;
  absl::StatusOr<Found> answer;
  {
    MutexLock lock(&mutex_);
    waiting = EndLocked(flight);
    if (waiting.empty()) return;  // as in Land
    if (restored.ok()) {
      stats_.restored += static_cast<int64_t>(waiting.size());
      auto key = std::make_shared<const ProgramKey>(std::move(restored->key));
      answer = Found{.program = InsertLocked(std::move(key), std::move(restored->program)),
                     .source = Source::kDisk,
                     .compile_time = time};
    } else {
      answer = restored.status();
    }
  }
  for (const Waiting& waiter : waiting) waiter.done(answer);
}

bool ProgramCache::Insert(Restored restored) {
  MutexLock lock(&mutex_);
  if (LookUpLocked(restored.key) != entries_.end()) return true;
  const int64_t bytes = BytesOf(restored.key, *restored.program);
  if (bytes > max_bytes_ - stats_.bytes) return false;
  AddLocked(entries_.end(), {.key = std::make_shared<const ProgramKey>(std::move(restored.key)),
                             .program = std::move(restored.program),
                             .bytes = bytes,
                             .last_used = absl::InfinitePast(),
                             .is_new_from_disk = true});
  return true;
}

CompiledProgramPtr ProgramCache::InsertLocked(KeyPtr key, CompiledProgramPtr program) {
  const Entries::iterator same = LookUpLocked(*key);
  if (same != entries_.end()) return same->program;
  const int64_t bytes = BytesOf(*key, *program);
  AddLocked(entries_.begin(),
            {.key = std::move(key), .program = program, .bytes = bytes, .last_used = options_.steady_now()});
  MeasureGrownLocked();
  EvictLocked();
  return program;
}

void ProgramCache::AddLocked(Entries::iterator at, Entry entry) {
  const Fingerprint fingerprint = entry.key->fingerprint;
  std::vector<Entries::iterator>& place = index_[PlaceOf(fingerprint)];
  for (const Entries::iterator other : place) {
    if (other->key->fingerprint == fingerprint) ambiguous_.insert(fingerprint);
  }
  stats_.bytes += entry.bytes;
  ++stats_.entries;
  place.push_back(entries_.insert(at, std::move(entry)));
}

void ProgramCache::SetBounds(int64_t max_bytes, absl::Duration keep_refused) {
  MutexLock lock(&mutex_);
  max_bytes_ = max_bytes;
  refused_.SetKeep(keep_refused, options_.steady_now());
  EvictLocked();
}

int64_t ProgramCache::max_bytes() const {
  MutexLock lock(&mutex_);
  return max_bytes_;
}

absl::Duration ProgramCache::keep_refused() const {
  MutexLock lock(&mutex_);
  return refused_.keep();
}

void ProgramCache::EvictLocked() {
  // The newest stays even where it alone is too large: its caller is about to run it.
  while (stats_.bytes > max_bytes_ && entries_.size() > 1) {
    EraseLocked(std::prev(entries_.end()));
    ++stats_.evictions;
  }
}

void ProgramCache::EraseLocked(Entries::iterator entry) {
  const Fingerprint place = PlaceOf(entry->key->fingerprint);
  std::vector<Entries::iterator>& same = index_[place];
  same.erase(std::find(same.begin(), same.end(), entry));
  if (same.empty()) index_.erase(place);
  stats_.bytes -= entry->bytes;
  --stats_.entries;
  discarded_.Add(std::move(entry->program), entry->bytes);
  entries_.erase(entry);
}

std::vector<ProgramCache::Listed> ProgramCache::List() const { return UsedSince(absl::InfinitePast()); }

std::vector<ProgramCache::Listed> ProgramCache::UsedSince(absl::Time time) const {
  MutexLock lock(&mutex_);
  std::vector<Listed> listed;
  for (const Entry& entry : entries_) {
    if (entry.last_used < time) continue;
    const absl::Duration ago = options_.steady_now() - entry.last_used;
    listed.push_back(
        {.program = entry.program, .bytes = BytesOf(*entry.key, *entry.program), .last_used = options_.now() - ago});
  }
  return listed;
}

int64_t ProgramCache::Evict(const Fingerprint& fingerprint) {
  MutexLock lock(&mutex_);
  int64_t evicted = 0;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto here = entry++;
    if (!(here->key->fingerprint == fingerprint)) continue;
    EraseLocked(here);
    ++evicted;
  }
  stats_.removed += evicted;
  return evicted;
}

int64_t ProgramCache::EvictAll() {
  MutexLock lock(&mutex_);
  const int64_t evicted = stats_.entries;
  for (Entry& entry : entries_) discarded_.Add(std::move(entry.program), entry.bytes);
  entries_.clear();
  index_.clear();
  stats_.entries = 0;
  stats_.bytes = 0;
  stats_.removed += evicted;
  return evicted;
}

ProgramCache::Stats ProgramCache::stats() const {
  MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.bytes = 0;
  for (const Entry& entry : entries_) stats.bytes += BytesOf(*entry.key, *entry.program);
  return stats;
}

}  // namespace tensord
