#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_STORE_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_STORE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/entry_folder.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"
#include "engine/runtime/programs/stored_program.h"

namespace tensord {

// Programs in an EntryFolder, so that a restarted server has them: bounded in bytes, the least recently used goes
// first. A thread of low priority writes them. A damaged or foreign entry is deleted and counted, never used. Several
// servers may share a folder. No fault of the disk fails a request: a failed write is counted and left out.
// Thread-safe; the destructor writes the waiting entries, for a while.
class ProgramStore {
 public:
  // The last use of a program.
  struct Use {
    Fingerprint fingerprint;
    absl::Time time;
  };
  struct Options {
    std::string folder;
    int64_t max_bytes = 0;
    const OpRegistry* registry = nullptr;           // must outlive the store
    std::function<std::vector<Use>()> uses;         // since it was last asked; none: only reads and writes are uses
    absl::Duration uses_period = absl::Minutes(1);  // how often it is asked, and once at the end
    // Gets the events that an operator should know: removed damage, the first of failing writes, and the first write
    // that succeeds again. On the thread that opens the store or on the one that writes, one at a time; may be none.
    std::function<void(absl::string_view event, const std::string& message)> warn;
    // The bound of programs that are not written yet, in number and in bytes of constants; and the time to write them
    // at the end.
    size_t max_waiting = 4096;
    int64_t max_waiting_bytes = int64_t{64} << 20;
    absl::Duration end_within = absl::Seconds(5);
  };
  struct Stats {
    int64_t entries = 0;
    int64_t bytes = 0;
    int64_t written = 0;
    int64_t loaded = 0;
    int64_t evictions = 0;     // to make room
    int64_t removed = 0;       // by Remove
    int64_t write_errors = 0;  // the system refused
    int64_t left_out = 0;      // too large, or too many waited
    std::array<int64_t, kNumEntryDamages> load_errors{};
  };

  // Makes the folder if it is missing, closes it to others, and removes files that killed servers left unfinished.
  // UNAVAILABLE if it cannot be used, or is another user's.
  static absl::StatusOr<std::unique_ptr<ProgramStore>> Open(Options options);
  ~ProgramStore();
  ProgramStore(const ProgramStore&) = delete;
  ProgramStore& operator=(const ProgramStore&) = delete;

  // Writes the program some time, unless it is there and whole. Never blocks. `graph` has no inferred types.
  void Put(Graph graph, CompileSettings settings, const Fingerprint& fingerprint);
  // Reads the program. PROGRAM_NOT_FOUND if there is none that can be used, with the damage of an unusable one.
  absl::StatusOr<StoredProgram> Load(const Fingerprint& fingerprint);
  bool Contains(const Fingerprint& fingerprint) const;
  // All of them, the most recently used first.
  std::vector<Fingerprint> List() const;
  // Returns true if there was one.
  bool Remove(const Fingerprint& fingerprint);

  // Sets the bound from now on; the writing thread makes room at once.
  void SetMaxBytes(int64_t max_bytes);
  int64_t max_bytes() const;

  // Waits until all entries put before are written, and a bound set before is kept.
  void Flush();
  Stats stats() const;

 private:
  struct Pending {
    Graph graph;
    CompileSettings settings;
    Fingerprint fingerprint;
    int64_t constant_bytes = 0;
  };
  ProgramStore(Options options, std::unique_ptr<EntryFolder> folder);

  void WriteLoop();
  void WriteUses();
  void Write(const Pending& pending);
  // Tells whether the entry is there and can be read; one that is damaged, or of another compiler, is removed.
  bool HasWhole(const Fingerprint& fingerprint);
  EntryDamage Read(const Fingerprint& fingerprint, std::string* bytes) const;
  void TellOfWrite(bool written, int error);
  void Warn(absl::string_view event, const std::string& message) const;
  void RemoveDamaged(const std::vector<std::string>& names);
  // Counts the removal of an entry that this server may not have known.
  void CountRemovedLocked(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the entries and removes the oldest while there are too many bytes.
  void Trim();
  // Trims to a bound that was set anew.
  void TrimAnew();

  const Options options_;
  const std::unique_ptr<EntryFolder> folder_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Pending> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the constants
  uint64_t put_ ABSL_GUARDED_BY(mutex_) = 0;           // how many ever waited
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;          // and of these, in the same order, do not any more
  int64_t max_bytes_ ABSL_GUARDED_BY(mutex_);
  bool must_trim_ ABSL_GUARDED_BY(mutex_) = false;  // the bound is another
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  int64_t written_since_scan_ = 0;  // confined to the writer
  int64_t failed_writes_ = 0;       // since one succeeded; confined to the writer
  std::thread writer_;              // last: it uses everything above
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_STORE_H_
