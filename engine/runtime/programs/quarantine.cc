#include "engine/runtime/programs/quarantine.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "engine/base/descriptor.h"
#include "engine/base/refusal.h"
#include "engine/runtime/programs/crash_record.h"
#include "engine/runtime/programs/program_folder.h"

namespace tensord {
namespace {

constexpr char kFolder[] = "quarantine";
constexpr absl::string_view kEnding = ".crash";
constexpr absl::Duration kTicks = absl::Milliseconds(50);
constexpr size_t kMostEntries = 4096;  // nobody's crashes are so many

std::string FileName(const Fingerprint& fingerprint) { return absl::StrCat(fingerprint.ToHex(), kEnding); }

// FileName for a signal handler, with a zero at the end.
class NameOfFile {
 public:
  explicit NameOfFile(const Fingerprint& fingerprint) {
    fingerprint.WriteHex(name_.data());
    std::copy(kEnding.begin(), kEnding.end(), name_.data() + 2 * Fingerprint::kBytes);
    name_.back() = 0;
  }
  const char* get() const { return name_.data(); }

 private:
  std::array<char, 2 * Fingerprint::kBytes + kEnding.size() + 1> name_;
};

// The folder of the files; none if no server crashed yet.
int OpenFiles(int folder) { return openat(folder, kFolder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

// The error, 0: none.
int RemoveFile(int files, const Fingerprint& fingerprint) {
  return unlinkat(files, FileName(fingerprint).c_str(), 0) == 0 ? 0 : errno;
}

bool ReadFile(int files, const std::string& name, std::string* bytes) {
  const Descriptor file(openat(files, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file.ok() || fstat(file.number(), &info) != 0) return false;
  if (!S_ISREG(info.st_mode) || info.st_size > static_cast<off_t>(sizeof(CrashRecord))) return false;
  bytes->resize(static_cast<size_t>(info.st_size));
  return ReadAll(file.number(), bytes);
}

std::string NameOfSignal(int signal) {
  if (signal == 0) return "a signal";
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal) : absl::StrCat("SIG", name);
}

absl::string_view Doing(ProgramWork work) {
  switch (work) {
    case ProgramWork::kCompile:
      return "was being compiled";
    case ProgramWork::kRestore:
      return "was being brought back from disk";
    case ProgramWork::kRun:
      break;
  }
  return "was running";
}

std::string Describe(const Quarantine::Entry& entry) {
  return absl::StrCat("the program \"", entry.fingerprint.ToHex(), "\" ", Doing(entry.work), " when ",
                      NameOfSignal(entry.signal), " ended a server", entry.is_known ? "" : ", beside others perhaps");
}

constexpr absl::string_view kHowItLeaves =
    "an operator releases it (tensordctl programs --release), or another version of the server does";

}  // namespace

absl::StatusOr<std::unique_ptr<Quarantine>> Quarantine::Open(Options options) {
  const int folder = open(options.folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return ProgramFolderError(options.folder, absl::StrCat("cannot be opened: ", strerror(errno)));
  std::unique_ptr<Quarantine> quarantine(new Quarantine(std::move(options), folder));
  for (const Entry& entry : quarantine->List()) {
    quarantine->Warn("program in quarantine", absl::StrCat(Describe(entry), "; it is refused until ", kHowItLeaves));
  }
  return quarantine;
}

Quarantine::Quarantine(Options options, int folder) : options_(std::move(options)), folder_(folder) {
  for (int& reserve : reserve_) reserve = fcntl(folder, F_DUPFD_CLOEXEC, 0);
}

Quarantine::~Quarantine() {
  close(folder_);
  CloseReserve();
}

void Quarantine::CloseReserve() {
  for (int& reserve : reserve_) {
    if (reserve >= 0) close(reserve);
    reserve = -1;
  }
}

std::string Quarantine::path() const { return absl::StrCat(options_.folder, "/", kFolder); }

absl::Status Quarantine::Check(const Fingerprint& fingerprint) const {
  if (!has_entries_.load()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  const auto it = entries_.find(fingerprint);
  if (it == entries_.end()) return absl::OkStatus();
  return Refuse(Refusal::kQuarantined, absl::StrCat(Describe(it->second), "; it is refused until ", kHowItLeaves));
}

std::vector<Quarantine::Entry> Quarantine::List() {
  Look();
  std::vector<Entry> entries;
  MutexLock lock(&mutex_);
  for (const auto& [fingerprint, entry] : entries_) entries.push_back(entry);
  return entries;
}

Quarantine::Counts Quarantine::counts() const {
  Counts counts;
  MutexLock lock(&mutex_);
  for (const auto& [fingerprint, entry] : entries_) ++(entry.is_known ? counts.known : counts.suspected);
  return counts;
}

Quarantine::Released Quarantine::Release(absl::Span<const Fingerprint> fingerprints) {
  Look();
  Released released;
  MutexLock look(&look_mutex_);  // a look that began before would bring them back
  const Descriptor files(OpenFiles(folder_));
  const int open_error = files.ok() ? 0 : errno;
  for (const Fingerprint& fingerprint : fingerprints) {
    {
      MutexLock lock(&mutex_);
      if (!entries_.contains(fingerprint)) continue;
    }
    const int error = open_error != 0 ? open_error : RemoveFile(files.number(), fingerprint);
    const absl::Status removed = error == 0 || error == ENOENT ? absl::OkStatus() : CannotRemove(fingerprint, error);
    released.failure.Update(removed);
    if (!removed.ok()) continue;
    released.fingerprints.push_back(fingerprint);
    MutexLock lock(&mutex_);
    entries_.erase(fingerprint);
    has_entries_ = !entries_.empty();
  }
  return released;
}

absl::Status Quarantine::CannotRemove(const Fingerprint& fingerprint, int error) const {
  return ProgramFolderError(options_.folder,
                            absl::StrCat("keeps the program in quarantine, since ", path(), "/", FileName(fingerprint),
                                         " cannot be removed: ", strerror(error), "; remove it and release it again"));
}

bool Quarantine::Look() {
  MutexLock look(&look_mutex_);
  struct stat info {};
  if (fstatat(folder_, kFolder, &info, AT_SYMLINK_NOFOLLOW) != 0) info.st_mtim = {};  // long ago
  const absl::Time changed = absl::TimeFromTimespec(info.st_mtim);
  if (changed == changed_) return true;
  // A file that changes again in the same tick of the system's clock has the same time.
  const bool is_settled = absl::AbsDuration(absl::Now() - changed) > kTicks;
  changed_ = is_settled ? changed : absl::InfinitePast();
  const Descriptor files(OpenFiles(folder_));
  Entries now = files.ok() ? Read(files.number()) : Entries();
  std::vector<Fingerprint> added;
  {
    MutexLock lock(&mutex_);
    for (const auto& [fingerprint, entry] : now) {
      if (!entries_.contains(fingerprint)) added.push_back(fingerprint);
    }
    entries_.swap(now);
    has_entries_ = !entries_.empty();
  }
  for (const Fingerprint& fingerprint : added) {
    if (options_.added) options_.added(fingerprint);
  }
  return is_settled;
}

Quarantine::Entries Quarantine::Read(int files) const {
  Entries entries;
  ForEachName(files, [&](const std::string& name) { Add(files, name, &entries); });
  return entries;
}

void Quarantine::Add(int files, const std::string& name, Entries* entries) const {
  if (!absl::EndsWith(name, kEnding) || entries->size() >= kMostEntries) return;
  const std::optional<Fingerprint> fingerprint = Fingerprint::FromHex(absl::StripSuffix(name, kEnding));
  std::string bytes;
  std::optional<CrashRecord> record;
  const bool is_file = fingerprint.has_value() && ReadFile(files, name, &bytes);
  if (is_file && bytes.empty()) {  // the disk was full, and the name says what matters
    entries->try_emplace(*fingerprint, Entry{.fingerprint = *fingerprint, .since = absl::UnixEpoch()});
    return;
  }
  if (is_file) record = ReadCrashRecord(bytes, *fingerprint);
  if (!record.has_value()) {
    if (unlinkat(files, name.c_str(), 0) != 0) return;
    Warn("quarantine damaged",
         absl::StrCat(options_.folder, "/", kFolder, "/", name, " is no record of a crash, so it is removed"));
    return;
  }
  const Entry entry{.fingerprint = *fingerprint,
                    .work = static_cast<ProgramWork>(record->work),
                    .signal = record->signal,
                    .is_known = record->is_known != 0,
                    .since = absl::FromUnixNanos(record->unix_ns)};
  if (!IsOfVersion(*record, options_.version)) {
    if (unlinkat(files, name.c_str(), 0) != 0) return;
    Warn("quarantine ended", absl::StrCat(Describe(entry), " of another version than ", options_.version));
    return;
  }
  entries->try_emplace(*fingerprint, entry);
}

void Quarantine::Warn(absl::string_view event, const std::string& message) const {
  if (options_.warn) options_.warn(event, message);
}

void Quarantine::WriteCrash(int signal, bool is_of_this_thread) {
  WorkSeen seen;
  size_t next = 0;
  const bool is_known = is_of_this_thread && SeeWorkOfThisThread(&seen);
  if (!is_known && !SeeNextWork(&next, &seen)) return;
  CloseReserve();
  mkdirat(folder_, kFolder, 0700);
  const int files = OpenFiles(folder_);
  if (files < 0) return;
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t unix_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  do {
    const NameOfFile name(seen.fingerprint);
    const int file = openat(files, name.get(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) continue;  // it is there, or cannot be made
    WriteAll(file, BytesOf(MakeCrashRecord(seen, is_known, signal, unix_ns, options_.version)));
    close(file);
  } while (!is_known && SeeNextWork(&next, &seen));
  close(files);
}

}  // namespace tensord
