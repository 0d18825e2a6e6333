#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_REFUSED_GRAPHS_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_REFUSED_GRAPHS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/fingerprint.h"
#include "engine/runtime/compile/compiler.h"

namespace tensord {

// The latest refusals of the compiler, so that a client that sends the same graph again and again costs no compilation.
// Kept for a while, bounded in number and bytes, the oldest goes first. Only refusals that the graph alone decides are
// kept: another attempt would end in the same. Thread-compatible.
class RefusedGraphs {
 public:
  struct Options {
    absl::Duration keep;  // zero: nothing is kept
    int64_t max_entries = 1024;
    int64_t max_bytes = int64_t{16} << 20;
  };
  struct Refused {
    absl::Status status;
    std::vector<std::string> names;  // NamesOf the graph that was refused
  };
  using KeyPtr = std::shared_ptr<const ProgramKey>;

  explicit RefusedGraphs(const Options& options) : options_(options) {}

  // Tells whether another attempt would be refused in the same way.
  static bool IsLasting(const absl::Status& status);

  // A status that is not lasting is not kept.
  void Add(KeyPtr key, const absl::Status& status, std::vector<std::string> names, absl::Time now);
  // Sets the time to keep refusals from now on; older ones go sooner if it is shorter.
  void SetKeep(absl::Duration keep, absl::Time now);
  absl::Duration keep() const { return options_.keep; }
  // Returns null if there is none. Valid until the next call.
  const Refused* Find(const ProgramKey& key, absl::Time now);

  int64_t entries() const { return static_cast<int64_t>(entries_.size()); }
  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    KeyPtr key;
    Refused refused;
    absl::Time until;
    int64_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  void DropOldest();

  Options options_;
  Entries entries_;  // the oldest first
  absl::flat_hash_map<Fingerprint, Entries::iterator> index_;
  int64_t bytes_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_REFUSED_GRAPHS_H_
