#ifndef TENSORD_ENGINE_BASE_ENTRY_FOLDER_H_
#define TENSORD_ENGINE_BASE_ENTRY_FOLDER_H_

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/descriptor.h"
#include "engine/base/fingerprint.h"

namespace tensord {

// Entries of one kind in a folder of the server's user: a file each, named by a fingerprint and the kind's ending, and
// used last at its time of modification. Each is written beside its place, made durable, and renamed into it: a reader
// sees all of an entry or nothing. Anything that is no file, or larger than any entry of the kind, is neither followed
// nor read, and a folder with an entry's name stays. Several processes and kinds may share a folder. Thread-safe.
class EntryFolder {
 public:
  struct Kind {
    std::string ending;      // ".program"
    int64_t most_bytes = 0;  // of an entry
  };
  struct Entry {
    std::string name;
    Fingerprint fingerprint;
    int64_t bytes = 0;
    absl::Time used;
  };
  enum class ReadResult : uint8_t {
    kRead,
    kForeign,  // no entry can be like this
    kIo,       // there is none, or the system could not read it just now
  };
  // The files of the kind, after a trim.
  struct Trimmed {
    int64_t entries = 0;
    int64_t bytes = 0;
    int64_t evictions = 0;
  };

  static constexpr absl::string_view kNotOwn = "must belong to the server's user; chown it";
  static bool IsOwn(const struct stat& folder);
  // Tells whether others than its owner may do something there.
  static bool IsOpenToOthers(const struct stat& folder);

  // Makes the folder if it is missing, and closes it to others. UNAVAILABLE says what is wrong with it, without its
  // name.
  static absl::StatusOr<std::unique_ptr<EntryFolder>> Open(const std::string& path, Kind kind);

  // Returns the folder's permissions before they were closed to others; 0 if they were closed.
  mode_t opened_with() const { return opened_with_; }

  std::string NameOf(const Fingerprint& fingerprint) const;
  bool Has(const Fingerprint& fingerprint) const;
  // Returns the bytes of the entry's file on disk; -1 if nothing is there, or a folder.
  int64_t BytesOf(const Fingerprint& fingerprint) const;
  ReadResult Read(const Fingerprint& fingerprint, std::string* bytes) const;
  // Writes all bytes into a new file, durable and under its name. False if the system refuses; errno says why.
  bool Write(const Fingerprint& fingerprint, absl::string_view bytes) const;
  // Returns false if there was nothing to remove.
  bool Remove(const std::string& name) const;
  void SetUsed(const Fingerprint& fingerprint, absl::Time used) const;

  // Returns the entries; `foreign`, if not null, gets the names of those that cannot be entries.
  std::vector<Entry> List(std::vector<std::string>* foreign = nullptr) const;
  // Removes the files of all kinds that killed processes left unfinished. A living one holds a lock on the file that it
  // writes.
  void RemoveLeftovers() const;
  // Removes the entries that were used longest ago while all are more than so many bytes, and some more then, so that
  // not every write has to look through the folder.
  Trimmed Trim(int64_t most_bytes) const;

 private:
  EntryFolder(int folder, Kind kind) : folder_(folder), kind_(std::move(kind)) {}
  // Looks at a name, and at a link itself.
  bool Look(const std::string& name, struct stat* info) const;
  bool IsEntry(const struct stat& info) const;

  const Descriptor folder_;
  const Kind kind_;
  mode_t opened_with_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_ENTRY_FOLDER_H_
