#ifndef TENSORD_ENGINE_RUNTIME_PROGRAM_CACHE_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAM_CACHE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"
#include "engine/runtime/compile_pool.h"
#include "engine/runtime/compiler.h"

namespace tensord {

// Compiled programs by key, in memory: bounded in bytes, the least recently used goes first. Callers that ask for one
// key at once share one compilation. A hit is confirmed by comparing the key's bytes. Thread-safe; never blocks for a
// compilation. The pool must outlive it.
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

  ProgramCache(int64_t max_bytes, CompilePool* pool) : max_bytes_(max_bytes), pool_(pool) {}

  // Calls `done` once: before it returns where the program is there, else from a thread of the pool. QUEUE_FULL where
  // the pool takes no more.
  void GetOrCompile(ProgramKey key, CompileFn compile, DoneFn done);
  // nullptr where it is not there. Counts as a use.
  CompiledProgramPtr Find(const Fingerprint& fingerprint);

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

  CompiledProgramPtr FindLocked(const ProgramKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void InsertLocked(KeyPtr key, CompiledProgramPtr program) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Land(const KeyPtr& key, absl::StatusOr<CompiledProgramPtr> program, absl::Duration compile_time);

  const int64_t max_bytes_;
  CompilePool* const pool_;
  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  // Several entries of one fingerprint only where it collides.
  absl::flat_hash_map<Fingerprint, std::vector<Entries::iterator>> index_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Fingerprint, std::vector<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAM_CACHE_H_
