#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_QUARANTINE_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_QUARANTINE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"
#include "engine/base/program_at_work.h"

namespace tensord {

// Programs that were at work when a server died by a signal, so that they do not end the next one too. Each is a file
// in a folder within that of the ProgramStore, written by the handler of the signal; servers that share the folder
// share them. A program leaves by Release, or when a server of another version starts. A damaged file is removed and
// reported, never used. Thread-safe.
class Quarantine {
 public:
  struct Entry {
    Fingerprint fingerprint;
    ProgramWork work = ProgramWork::kRun;
    int signal = 0;         // 0: unknown, because the disk was full
    bool is_known = false;  // the crash was in its own work; else it was at work elsewhere, or that is not known
    absl::Time since;
  };
  struct Counts {
    int64_t known = 0;
    int64_t suspected = 0;
  };
  struct Options {
    std::string folder;   // the store's, which is there and private
    std::string version;  // of the server
    // Gets the news of quarantine: programs found in it, programs that leave it, and damage. May be none.
    std::function<void(absl::string_view event, const std::string& message)> warn;
    // Gets programs that another server added, after the start. May be none.
    std::function<void(const Fingerprint&)> added;
  };

  // Fails with UNAVAILABLE if the folder cannot be had.
  static absl::StatusOr<std::unique_ptr<Quarantine>> Open(Options options);
  ~Quarantine();
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

  // Reads the files that other servers added or released, for threads that may wait for the disk: one call of the
  // system if nothing has changed. False if the last change is so recent that another one could go unnoticed: look
  // again.
  bool Look();
  // Returns the path that changes with the files.
  std::string path() const;

  // Fails with QUARANTINED for a program that was there at the last look. Waits for none.
  absl::Status Check(const Fingerprint& fingerprint) const;
  // Lists the entries by fingerprint. Looks first.
  std::vector<Entry> List();
  // Returns the counts of the last look.
  Counts counts() const;
  struct Released {
    std::vector<Fingerprint> fingerprints;  // that were there, and are no more
    absl::Status failure;                   // UNAVAILABLE where a file cannot be removed, the first; its program stays
  };
  // Looks first, once.
  Released Release(absl::Span<const Fingerprint> fingerprints);

  // Writes down the programs at work: the calling thread's if the crash `is_of_this_thread` and it has one, else those
  // of all threads. For the handler of a signal that ends the process, once.
  void WriteCrash(int signal, bool is_of_this_thread);

 private:
  using Entries = absl::flat_hash_map<Fingerprint, Entry>;

  Quarantine(Options options, int folder);
  void CloseReserve();

  absl::Status CannotRemove(const Fingerprint& fingerprint, int error) const;
  Entries Read(int files) const;
  void Add(int files, const std::string& name, Entries* entries) const;
  void Warn(absl::string_view event, const std::string& message) const;

  const Options options_;
  const int folder_;              // a descriptor
  std::array<int, 2> reserve_{};  // others, for a handler that finds none left
  Mutex look_mutex_;              // one look at a time; taken before the other
  absl::Time changed_ ABSL_GUARDED_BY(look_mutex_) = absl::InfinitePast();  // when, of what was read last
  mutable Mutex mutex_;                                                     // never held while files are read
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_entries_{false};  // for all who run what is in memory
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_QUARANTINE_H_
