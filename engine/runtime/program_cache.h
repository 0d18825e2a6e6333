#ifndef TENSORD_ENGINE_RUNTIME_PROGRAM_CACHE_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAM_CACHE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"
#include "engine/base/steady_time.h"
#include "engine/exec/queued_work.h"
#include "engine/exec/waiters.h"
#include "engine/runtime/compile_pool.h"
#include "engine/runtime/compiler.h"
#include "engine/runtime/discarded_programs.h"
#include "engine/runtime/refused_graphs.h"

namespace tensord {

// Compiled programs by key, in memory: bounded in bytes, the least recently used goes first. Callers that ask for one
// key at once share one compilation. A key is found by its fingerprint and told apart by its bytes, so that who sends a
// graph runs that graph even where fingerprints collide. What a program has become for sets of sizes counts when it is
// found the next time, or when all together have become much more. What the compiler refused is remembered for a while
// too. Thread-safe; never blocks for a
// compilation. The pool must outlive it.
class ProgramCache {
 public:
  enum class Source : uint8_t { kCompiled, kMemory, kJoined, kDisk };

  struct Found {
    CompiledProgramPtr program;
    Source source = Source::kMemory;
    absl::Duration compile_time;  // zero from memory
  };
  // A program that was brought back from where it was kept.
  struct Restored {
    ProgramKey key;
    CompiledProgramPtr program;
  };
  struct Listed {
    CompiledProgramPtr program;
    int64_t bytes = 0;
    absl::Time last_used;  // InfinitePast: not since it came from disk
  };
  using CompileFn = std::function<absl::StatusOr<CompiledProgramPtr>()>;
  using RestoreFn = std::function<absl::StatusOr<Restored>()>;
  using DoneFn = std::function<void(absl::StatusOr<Found>)>;
  // For who waits no more: then `done` is not called, unless that has begun, and what nobody else waits for is dropped
  // or broken off. Null where nothing is waited for.
  using LeaveFn = std::function<void()>;
  // NamesOf the asker's graph.
  using NamesFn = std::function<std::vector<std::string>()>;

  struct Stats {
    int64_t hits = 0;      // in memory
    int64_t restored = 0;  // found there for the first time after they came from disk
    int64_t negative = 0;  // refused as a moment ago
    int64_t compiled = 0;
    int64_t joined = 0;
    int64_t failed = 0;
    int64_t abandoned = 0;  // dropped or broken off, since nobody waited any more
    int64_t evictions = 0;  // to make room
    int64_t removed = 0;    // by Evict and EvictAll
    int64_t entries = 0;
    int64_t bytes = 0;
  };

  struct Options {
    int64_t max_bytes = 0;
    bool collide = false;  // every key is looked for among all others, as if all had one hash; for tests
    RefusedGraphs::Options refused = {.keep = absl::ZeroDuration()};
    std::shared_ptr<const BindingStats> sized = nullptr;  // in which the programs count what they keep for sizes
    std::function<absl::Time()> now = [] { return absl::Now(); };  // for people
    std::function<absl::Time()> steady_now = &SteadyNow;
  };

  ProgramCache(const Options& options, CompilePool* pool)
      : options_(options), pool_(pool), max_bytes_(options.max_bytes), refused_(options.refused) {}

  // From now on: programs go at once until the rest fits, and refusals are not remembered longer than that.
  void SetBounds(int64_t max_bytes, absl::Duration keep_refused);
  int64_t max_bytes() const;
  absl::Duration keep_refused() const;

  // Calls `done` once: before it returns where the program is there or was refused a moment ago, else from a thread of
  // the pool, where it has the tenant's turn. QUEUE_FULL where the pool takes no more. kCompiled: the program is what
  // `compile` made, whatever others find. A refusal of another asker's graph is told in the names of this one's;
  // `names` is called at most once, before `compile`.
  LeaveFn GetOrCompile(ProgramKey key, CompileFn compile, DoneFn done, NamesFn names = nullptr,
                       const std::string& tenant = "");
  // The same by fingerprint, as Find, for a program that is not here but that `restore` can bring back, which happens
  // once for all who ask.
  LeaveFn FindOrRestore(const Fingerprint& fingerprint, RestoreFn restore, DoneFn done, const std::string& tenant = "");
  // Adds a program that was brought back before anybody asked, unless it is here, as the first to go. False where there
  // is no room for it.
  bool Insert(Restored restored);
  // The program of that fingerprint, which counts as a use. PROGRAM_NOT_FOUND where there is none;
  // FINGERPRINT_AMBIGUOUS, from then on, where two programs that had it met here: it does not say which is meant.
  absl::StatusOr<CompiledProgramPtr> Find(const Fingerprint& fingerprint);
  // PROGRAM_NOT_FOUND, as Find says it.
  static absl::Status RefuseUnknown(const Fingerprint& fingerprint);

  // All of them; no use.
  std::vector<Listed> List() const;
  // Those used at that time of SteadyNow or later.
  std::vector<Listed> UsedSince(absl::Time time) const;
  // Forgets the programs of that fingerprint, or all; who runs them keeps them. How many there were.
  int64_t Evict(const Fingerprint& fingerprint);
  int64_t EvictAll();

  // The bytes as they are now.
  Stats stats() const;

 private:
  using KeyPtr = std::shared_ptr<const ProgramKey>;  // shared: a key is as large as the graph's constants
  struct Entry {
    KeyPtr key;
    CompiledProgramPtr program;
    int64_t bytes = 0;
    absl::Time last_used;           // by SteadyNow
    bool is_new_from_disk = false;  // nobody has found it yet
  };
  struct Waiting {
    DoneFn done;
    NamesFn names;
    bool leads = false;  // it is its graph that is compiled
  };
  // What somebody waits for. One that nobody waits for any more is in no table.
  struct Flight {
    KeyPtr key;               // null for one that is restored
    Fingerprint fingerprint;  // of one that is restored
    Waiters<Waiting> waiting;
    std::shared_ptr<QueuedWork> work;
  };
  using FlightPtr = std::shared_ptr<Flight>;
  using Entries = std::list<Entry>;

  // Where the index has a fingerprint.
  Fingerprint PlaceOf(const Fingerprint& fingerprint) const { return options_.collide ? Fingerprint() : fingerprint; }
  // The entry's program may have grown or shrunk.
  void MeasureLocked(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Measures all where they have grown by kMeasuredShare of what there is room for since the last time.
  void MeasureGrownLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A use of the entry.
  Found UseLocked(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Down to max_bytes_, but for the one that was used last.
  void EvictLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseLocked(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // end() where there is none.
  Entries::iterator LookUpLocked(const ProgramKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Found> FindLocked(const Fingerprint& fingerprint) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The program that is then here: an equal one that was here stays.
  CompiledProgramPtr InsertLocked(KeyPtr key, CompiledProgramPtr program) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLocked(Entries::iterator at, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One that others have begun is queued for the tenant too.
  LeaveFn JoinLocked(const FlightPtr& flight, const std::string& tenant, Waiting waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has a new one's work done, or refuses to, after which it is in no table.
  absl::Status BeginLocked(const FlightPtr& flight, const std::string& tenant, std::function<void()> work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(const FlightPtr& flight, uint64_t waiting);
  // Out of its table, and those who wait for it.
  std::vector<Waiting> EndLocked(const FlightPtr& flight) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fly(const FlightPtr& flight, const CompileFn& compile, const NamesFn& names);
  void Land(const FlightPtr& flight, absl::StatusOr<CompiledProgramPtr> program, absl::Duration compile_time,
            std::vector<std::string> names);
  void LandRestored(const FlightPtr& flight, absl::StatusOr<Restored> restored, absl::Duration time);

  const Options options_;
  CompilePool* const pool_;
  mutable Mutex mutex_;
  int64_t max_bytes_ ABSL_GUARDED_BY(mutex_);
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  // By place. Several in one only where fingerprints collide.
  absl::flat_hash_map<Fingerprint, std::vector<Entries::iterator>> index_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Fingerprint, std::vector<FlightPtr>> flights_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Fingerprint, FlightPtr> restoring_ ABSL_GUARDED_BY(mutex_);
  RefusedGraphs refused_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Fingerprint> ambiguous_ ABSL_GUARDED_BY(mutex_);  // grows with SHA-256's collisions
  int64_t measured_sized_bytes_ ABSL_GUARDED_BY(mutex_) = 0;            // of options_.sized, when all were measured
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  DiscardedPrograms discarded_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAM_CACHE_H_
