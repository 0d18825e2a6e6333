#include "engine/base/entry_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tensord {
namespace {

constexpr absl::string_view kUnfinishedEnding = ".unfinished";

std::string UnfinishedName() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8), kUnfinishedEnding);
}

absl::Status FolderError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

}  // namespace

bool EntryFolder::IsOwn(const struct stat& folder) { return folder.st_uid == geteuid(); }

bool EntryFolder::IsOpenToOthers(const struct stat& folder) { return (folder.st_mode & 077) != 0; }

absl::StatusOr<std::unique_ptr<EntryFolder>> EntryFolder::Open(const std::string& path, Kind kind) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return FolderError("cannot be made");
  const int number = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (number < 0) return FolderError("cannot be opened");
  std::unique_ptr<EntryFolder> folder(new EntryFolder(number, std::move(kind)));
  struct stat info {};
  if (fstat(number, &info) != 0 || !IsOwn(info)) return absl::UnavailableError(kNotOwn);
  // Files put there meanwhile gain nothing: entries are checked.
  if (!IsOpenToOthers(info)) return folder;
  folder->opened_with_ = info.st_mode & 07777;
  if (fchmod(number, 0700) != 0) return FolderError("is open to others and cannot be closed");
  return folder;
}

std::string EntryFolder::NameOf(const Fingerprint& fingerprint) const {
  return absl::StrCat(fingerprint.ToHex(), kind_.ending);
}

bool EntryFolder::Look(const std::string& name, struct stat* info) const {
  return fstatat(folder_.number(), name.c_str(), info, AT_SYMLINK_NOFOLLOW) == 0;
}

// Nothing else could ever have been written.
bool EntryFolder::IsEntry(const struct stat& info) const {
  return S_ISREG(info.st_mode) && info.st_size <= kind_.most_bytes;
}

bool EntryFolder::Has(const Fingerprint& fingerprint) const {
  struct stat info {};
  return Look(NameOf(fingerprint), &info) && IsEntry(info);
}

int64_t EntryFolder::BytesOf(const Fingerprint& fingerprint) const {
  struct stat info {};
  if (!Look(NameOf(fingerprint), &info) || S_ISDIR(info.st_mode)) return -1;
  return IsEntry(info) ? static_cast<int64_t>(info.st_size) : 0;
}

EntryFolder::ReadResult EntryFolder::Read(const Fingerprint& fingerprint, std::string* bytes) const {
  const Descriptor file(
      openat(folder_.number(), NameOf(fingerprint).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.ok()) return errno == ELOOP ? ReadResult::kForeign : ReadResult::kIo;
  struct stat info {};
  if (fstat(file.number(), &info) != 0) return ReadResult::kIo;
  if (!IsEntry(info)) return ReadResult::kForeign;
  bytes->resize(static_cast<size_t>(info.st_size));
  return ReadAll(file.number(), bytes) ? ReadResult::kRead : ReadResult::kIo;
}

bool EntryFolder::Write(const Fingerprint& fingerprint, absl::string_view bytes) const {
  const std::string unfinished = UnfinishedName();
  const int folder = folder_.number();
  const Descriptor file(openat(folder, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.ok()) return false;
  const bool in_place = flock(file.number(), LOCK_EX | LOCK_NB) == 0 && WriteAll(file.number(), bytes) &&
                        fsync(file.number()) == 0 &&
                        renameat(folder, unfinished.c_str(), folder, NameOf(fingerprint).c_str()) == 0;
  if (!in_place) {
    const int error = errno;
    unlinkat(folder, unfinished.c_str(), 0);
    errno = error;
    return false;
  }
  fsync(folder);  // the name; without it the entry is only missing after a crash of the machine
  return true;
}

bool EntryFolder::Remove(const std::string& name) const { return unlinkat(folder_.number(), name.c_str(), 0) == 0; }

void EntryFolder::SetUsed(const Fingerprint& fingerprint, absl::Time used) const {
  const timespec times[2] = {absl::ToTimespec(used), absl::ToTimespec(used)};
  utimensat(folder_.number(), NameOf(fingerprint).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

std::vector<EntryFolder::Entry> EntryFolder::List(std::vector<std::string>* foreign) const {
  std::vector<Entry> entries;
  ForEachName(folder_.number(), [&](std::string name) {
    if (!absl::EndsWith(name, kind_.ending)) return;
    const auto fingerprint = Fingerprint::FromHex(absl::StripSuffix(name, kind_.ending));
    struct stat info {};
    if (!fingerprint.has_value() || !Look(name, &info) || S_ISDIR(info.st_mode)) return;
    if (!IsEntry(info)) {
      if (foreign != nullptr) foreign->push_back(std::move(name));
      return;
    }
    entries.push_back({.name = std::move(name),
                       .fingerprint = *fingerprint,
                       .bytes = static_cast<int64_t>(info.st_size),
                       .used = absl::TimeFromTimespec(info.st_mtim)});
  });
  return entries;
}

void EntryFolder::RemoveLeftovers() const {
  ForEachName(folder_.number(), [this](const std::string& name) {
    if (!absl::EndsWith(name, kUnfinishedEnding)) return;
    const Descriptor file(openat(folder_.number(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.ok() && flock(file.number(), LOCK_EX | LOCK_NB) == 0) unlinkat(folder_.number(), name.c_str(), 0);
  });
}

EntryFolder::Trimmed EntryFolder::Trim(int64_t most_bytes) const {
  std::vector<Entry> entries = List();
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  Trimmed trimmed{.entries = static_cast<int64_t>(entries.size())};
  for (const Entry& entry : entries) trimmed.bytes += entry.bytes;
  const int64_t wanted = trimmed.bytes > most_bytes ? most_bytes - most_bytes / 8 : trimmed.bytes;
  for (const Entry& entry : entries) {
    if (trimmed.bytes <= wanted) break;
    if (!Remove(entry.name) && errno != ENOENT) continue;  // gone: another server's doing
    trimmed.bytes -= entry.bytes;
    --trimmed.entries;
    ++trimmed.evictions;
  }
  return trimmed;
}

}  // namespace tensord
