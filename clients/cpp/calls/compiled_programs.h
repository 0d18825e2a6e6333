#ifndef TENSORD_CLIENTS_CPP_CALLS_COMPILED_PROGRAMS_H_
#define TENSORD_CLIENTS_CPP_CALLS_COMPILED_PROGRAMS_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

// A program that a client has compiled, and its source: for servers that do not know it.
struct CompiledProgram {
  std::shared_ptr<const v1::CompileRequest> source;
  std::string route;
  std::string fingerprint;  // by which servers know it now; those of another version may have another one
};

// A client's compiled programs, by the fingerprints that it was told. Keeps those used last, up to kMostBytes of
// graphs, and one in any case. Thread-safe.
class CompiledPrograms {
 public:
  static constexpr size_t kMostBytes = size_t{256} << 20;

  explicit CompiledPrograms(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  void Add(const std::string& fingerprint, v1::CompileRequest source, std::string route);
  std::optional<CompiledProgram> Find(const std::string& fingerprint);
  // Notes whether the server of a call knew the program. True: it did not for the second time in a row, as a server of
  // another version never will.
  bool NoteAnswer(const std::string& fingerprint, bool was_known);
  // Servers know it by another fingerprint now.
  void Rename(const std::string& fingerprint, const std::string& now);

 private:
  struct Entry {
    CompiledProgram program;
    size_t bytes = 0;
    bool was_unknown = false;
    std::list<std::string>::iterator place;
  };

  const size_t most_bytes_;
  std::mutex mutex_;
  std::list<std::string> used_;  // the one that was used last in front
  absl::flat_hash_map<std::string, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_COMPILED_PROGRAMS_H_
