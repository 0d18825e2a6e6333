#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_CACHE_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_CACHE_H_

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
#include "engine/base/queued_work.h"
#include "engine/base/steady_time.h"
#include "engine/base/waiters.h"
#include "engine/runtime/compile/compile_pool.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/programs/discarded_programs.h"
#include "engine/runtime/programs/refused_graphs.h"

namespace tensord {

// Compiled programs by key, in memory, bounded in bytes: the least recently used program goes first. Callers with one
// key share one compilation. A key is found by its fingerprint and compared by its bytes, so that a caller runs its own
// graph even if fingerprints collide. Memory that programs take for sets of sizes is measured when they are found, or
// when it has grown much in all. Refusals of the compiler are remembered for a while. The pool must outlive it.
// Thread-safe; never blocks for a compilation.
class ProgramCache {
 public:
  enum class Source : uint8_t { kCompiled, kMemory, kJoined, kDisk };

  struct Found {
    CompiledProgramPtr program;
    Source source = Source::kMemory;
    absl::Duration compile_time;  // zero from memory
  };
  // A program from disk.
  struct Restored {
    ProgramKey key;
    CompiledProgramPtr program;
  };
  struct Listed {
    CompiledProgramPtr program;
    int64_t bytes = 0;
    absl::Time last_used;  // InfinitePast: unused since it came from disk
  };
  using CompileFn = std::function<absl::StatusOr<CompiledProgramPtr>()>;
  using RestoreFn = std::function<absl::StatusOr<Restored>()>;
  using DoneFn = std::function<void(absl::StatusOr<Found>)>;
  // Withdraws a caller: `done` is not called unless its call has begun, and work without other callers is dropped or
  // broken off. Null if there is nothing to wait for.
  using LeaveFn = std::function<void()>;
  // Returns NamesOf the caller's graph.
  using NamesFn = std::function<std::vector<std::string>()>;

  struct Stats {
    int64_t hits = 0;      // in memory
    int64_t restored = 0;  // first finds of programs from disk
    int64_t negative = 0;  // remembered refusals
    int64_t compiled = 0;
    int64_t joined = 0;
    int64_t failed = 0;
    int64_t abandoned = 0;  // dropped or broken off without a waiting caller
    int64_t evictions = 0;  // to make room
    int64_t removed = 0;    // by Evict and EvictAll
    int64_t entries = 0;
    int64_t bytes = 0;
  };

  struct Options {
    int64_t max_bytes = 0;
    bool collide = false;  // all keys collide, as with one hash; for tests
    RefusedGraphs::Options refused = {.keep = absl::ZeroDuration()};
    std::shared_ptr<const BindingStats> sized = nullptr;           // the programs' counts of memory for sets of sizes
    std::function<absl::Time()> now = [] { return absl::Now(); };  // for people
    std::function<absl::Time()> steady_now = &SteadyNow;
  };

  ProgramCache(const Options& options, CompilePool* pool)
      : options_(options), pool_(pool), max_bytes_(options.max_bytes), refused_(options.refused) {}

  // Tells of memory that another user of the programs' graphs let go of: it goes back to the system with theirs.
  void LetGo(int64_t bytes) { discarded_.LetGo(bytes); }

  // Changes the bounds: drops programs at once until the others fit, and refusals older than `keep_refused`.
  void SetBounds(int64_t max_bytes, absl::Duration keep_refused);
  int64_t max_bytes() const;
  absl::Duration keep_refused() const;

  // Finds the program of a key or compiles it. Calls `done` once: before it returns if the program or a refusal is in
  // memory, else from a thread of the pool, in a turn of the tenant. QUEUE_FULL if the pool is full. With kCompiled the
  // program is the very result of `compile`. A refusal of another caller's graph is told in the names of this caller's
  // graph; `names` is called at most once, before `compile`.
  LeaveFn GetOrCompile(ProgramKey key, CompileFn compile, DoneFn done, NamesFn names = nullptr,
                       const std::string& tenant = "");
  // Finds a program by its fingerprint, as Find does, or restores it from disk, once for all callers.
  LeaveFn FindOrRestore(const Fingerprint& fingerprint, RestoreFn restore, DoneFn done, const std::string& tenant = "");
  // Adds a program from disk unless it is here, as the next to be dropped. False if there is no room for it.
  bool Insert(Restored restored);
  // Finds a program by its fingerprint, which counts as a use. PROGRAM_NOT_FOUND; FINGERPRINT_AMBIGUOUS for ever after
  // two programs with the fingerprint have met here.
  absl::StatusOr<CompiledProgramPtr> Find(const Fingerprint& fingerprint);
  // Returns Find's refusal PROGRAM_NOT_FOUND.
  static absl::Status RefuseUnknown(const Fingerprint& fingerprint);

  // Lists all programs, which counts as no use.
  std::vector<Listed> List() const;
  // Lists the programs used at `time` of SteadyNow or later.
  std::vector<Listed> UsedSince(absl::Time time) const;
  // Drop the programs of a fingerprint, or all; running programs stay alive. Return the number of dropped programs.
  int64_t Evict(const Fingerprint& fingerprint);
  int64_t EvictAll();

  // Returns the counts, with bytes measured now.
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
    bool leads = false;  // its graph is the one that is compiled
  };
  // Work with waiting callers. Without callers it is in no table.
  struct Flight {
    KeyPtr key;               // null for a restoration
    Fingerprint fingerprint;  // of a restoration
    Waiters<Waiting> waiting;
    std::shared_ptr<QueuedWork> work;
  };
  using FlightPtr = std::shared_ptr<Flight>;
  using Entries = std::list<Entry>;

  // Returns a fingerprint's place in the index.
  Fingerprint PlaceOf(const Fingerprint& fingerprint) const { return options_.collide ? Fingerprint() : fingerprint; }
  // Measures an entry's program, which may have grown or shrunk.
  void MeasureLocked(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Measures all programs if they have grown by kMeasuredShare of the bound since the last time.
  void MeasureGrownLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records a use of the entry.
  Found UseLocked(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops programs down to max_bytes_, except for the most recently used one.
  void EvictLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseLocked(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns end() for an unknown key.
  Entries::iterator LookUpLocked(const ProgramKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Found> FindLocked(const Fingerprint& fingerprint) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a program and returns the one that stays: an equal older one wins.
  CompiledProgramPtr InsertLocked(KeyPtr key, CompiledProgramPtr program) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLocked(Entries::iterator at, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Joins work in progress, which is then queued for this tenant too.
  LeaveFn JoinLocked(const FlightPtr& flight, const std::string& tenant, Waiting waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts new work; a refused one is in no table afterwards.
  absl::Status BeginLocked(const FlightPtr& flight, const std::string& tenant, std::function<void()> work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(const FlightPtr& flight, uint64_t waiting);
  // Removes the work from its table, and returns its callers.
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
  // Entries by place. A place has several only if fingerprints collide.
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

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_CACHE_H_
