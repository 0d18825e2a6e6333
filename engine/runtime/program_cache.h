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
#include "absl/time/time.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"
#include "engine/runtime/compile_pool.h"
#include "engine/runtime/compiler.h"

namespace tensord {

// Compiled programs by key, in memory: bounded in bytes, the least recently used goes first. Callers that ask for one
// key at once share one compilation. A key is found by its fingerprint and told apart by its bytes, so that who sends a
// graph runs that graph even where fingerprints collide. What a program has become for sets of sizes is counted when it
// is found the next time. Thread-safe; never blocks for a compilation. The pool must
// outlive it.
class ProgramCache {
 public:
  enum class Source : uint8_t { kCompiled, kMemory, kJoined };

  struct Found {
    CompiledProgramPtr program;
    Source source = Source::kMemory;
    absl::Duration compile_time;  // zero from memory
  };
  using CompileFn = std::function<absl::StatusOr<CompiledProgramPtr>()>;
  using DoneFn = std::function<void(absl::StatusOr<Found>)>;

  struct Stats {
    int64_t hits = 0;
    int64_t compiled = 0;
    int64_t joined = 0;
    int64_t failed = 0;
    int64_t evictions = 0;
    int64_t entries = 0;
    int64_t bytes = 0;
  };

  struct Options {
    int64_t max_bytes = 0;
    bool collide = false;  // every key is looked for among all others, as if all had one hash; for tests
  };

  ProgramCache(const Options& options, CompilePool* pool) : options_(options), pool_(pool) {}

  // Calls `done` once: before it returns where the program is there, else from a thread of the pool. QUEUE_FULL where
  // the pool takes no more.
  void GetOrCompile(ProgramKey key, CompileFn compile, DoneFn done);
  // The program of that fingerprint, which counts as a use. PROGRAM_NOT_FOUND where there is none;
  // FINGERPRINT_AMBIGUOUS, from then on, where two programs that had it met here: it does not say which is meant.
  absl::StatusOr<CompiledProgramPtr> Find(const Fingerprint& fingerprint);

  Stats stats() const;

 private:
  using KeyPtr = std::shared_ptr<const ProgramKey>;  // shared: a key is as large as the graph's constants
  struct Entry {
    KeyPtr key;
    CompiledProgramPtr program;
    int64_t bytes = 0;
  };
  struct Flight {
    KeyPtr key;
    std::vector<DoneFn> waiting;
  };
  using Entries = std::list<Entry>;

  // Where the index has a fingerprint.
  Fingerprint PlaceOf(const Fingerprint& fingerprint) const { return options_.collide ? Fingerprint() : fingerprint; }
  // A use of the entry, whose program may have grown or shrunk since the last one.
  CompiledProgramPtr UseLocked(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Down to max_bytes, but for the one that was used last.
  void EvictLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CompiledProgramPtr FindLocked(const ProgramKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void InsertLocked(KeyPtr key, CompiledProgramPtr program) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Land(const KeyPtr& key, absl::StatusOr<CompiledProgramPtr> program, absl::Duration compile_time);

  const Options options_;
  CompilePool* const pool_;
  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  // By place. Several in one only where fingerprints collide.
  absl::flat_hash_map<Fingerprint, std::vector<Entries::iterator>> index_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Fingerprint, std::vector<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Fingerprint> ambiguous_ ABSL_GUARDED_BY(mutex_);  // grows with SHA-256's collisions
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAM_CACHE_H_
