#include "engine/runtime/programs/program_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <random>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "engine/base/descriptor.h"
#include "engine/base/refusal.h"
#include "engine/base/thread_niceness.h"
#include "engine/ir/parser.h"
#include "engine/runtime/programs/program_folder.h"

namespace tensord {
namespace {

constexpr absl::string_view kEntryEnding = ".program";
constexpr absl::string_view kUnfinishedEnding = ".unfinished";
static_assert(kMaxEntryBytes <= static_cast<int64_t>(kMaxGraphTextBytes), "what is written can be read");
constexpr int kNiceness = 19;  // the lowest priority that there is
// Other servers write into the folder too, which only a scan sees.
constexpr int64_t kWritesBetweenScans = 256;

std::string EntryName(const Fingerprint& fingerprint) { return absl::StrCat(fingerprint.ToHex(), kEntryEnding); }

std::string UnfinishedName() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8), kUnfinishedEnding);
}

// A store could never have written anything else.
bool IsEntry(const struct stat& info) { return S_ISREG(info.st_mode) && info.st_size <= kMaxEntryBytes; }

// A link is looked at itself.
bool Look(int folder, const std::string& name, struct stat* info) {
  return fstatat(folder, name.c_str(), info, AT_SYMLINK_NOFOLLOW) == 0;
}

void SetUsed(int folder, const std::string& name, absl::Time used) {
  const timespec times[2] = {absl::ToTimespec(used), absl::ToTimespec(used)};
  utimensat(folder, name.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

int64_t ConstantBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    for (size_t i = 0; i < node.attrs.schema().size(); ++i) {
      const LiteralPtr* const literal = std::get_if<LiteralPtr>(&node.attrs.at(i));
      if (literal != nullptr && *literal != nullptr) bytes += static_cast<int64_t>((*literal)->bytes().size());
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramStore>> ProgramStore::Open(Options options) {
  const std::string& path = options.folder;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return ProgramFolderError(path, absl::StrCat("cannot be made: ", std::strerror(errno)));
  }
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return ProgramFolderError(path, absl::StrCat("cannot be opened: ", std::strerror(errno)));
  struct stat info {};
  if (fstat(folder, &info) != 0 || !IsOwnFolder(info)) {
    close(folder);
    return ProgramFolderError(path, kFolderNotOwn);
  }
  // Files put there meanwhile gain nothing: entries are checked as strictly as clients' bytes.
  const bool is_open = IsOpenToOthers(info);
  if (is_open && fchmod(folder, 0700) != 0) {
    const absl::Status refused =
        ProgramFolderError(path, absl::StrCat("is open to others and cannot be closed: ", std::strerror(errno)));
    close(folder);
    return refused;
  }
  std::unique_ptr<ProgramStore> store(new ProgramStore(std::move(options), folder));
  if (is_open) {
    store->Warn("program folder closed",
                absl::StrCat("the folder of programs, ", path, ", was open to others (mode ",
                             absl::StrFormat("%04o", info.st_mode & 07777), "); it is 0700 now"));
  }
  store->RemoveLeftovers();
  store->Trim();
  store->writer_ = std::thread([raw = store.get()] { raw->WriteLoop(); });
  return store;
}

ProgramStore::ProgramStore(Options options, int folder)
    : options_(std::move(options)), folder_(folder), max_bytes_(options_.max_bytes) {}

ProgramStore::~ProgramStore() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  if (writer_.joinable()) writer_.join();
  close(folder_);
}

void ProgramStore::Put(Graph graph, CompileSettings settings, const Fingerprint& fingerprint) {
  const int64_t bytes = ConstantBytes(graph);
  {
    MutexLock lock(&mutex_);
    if (waiting_.size() >= options_.max_waiting || bytes > options_.max_waiting_bytes - waiting_bytes_) {
      ++stats_.left_out;
      return;
    }
    ++put_;
    waiting_bytes_ += bytes;
    waiting_.push_back({.graph = std::move(graph),
                        .settings = std::move(settings),
                        .fingerprint = fingerprint,
                        .constant_bytes = bytes});
  }
  changed_.SignalAll();
}

absl::StatusOr<StoredProgram> ProgramStore::Load(const Fingerprint& fingerprint) {
  const std::string name = EntryName(fingerprint);
  const auto refuse = [&](absl::string_view what) {
    return Refuse(Refusal::kProgramNotFound, absl::StrCat(what, "; compile the graph again and repeat the call"));
  };
  struct stat info {};
  if (!Look(folder_, name, &info) || S_ISDIR(info.st_mode)) {
    return refuse(absl::StrCat("no program here has the fingerprint \"", fingerprint.ToHex(), "\""));
  }
  std::string bytes;
  StoredProgram program;
  EntryDamage damage = Read(name, &bytes);
  if (damage == EntryDamage::kNone) {
    damage = DecodeStoredProgram(bytes, fingerprint, *options_.registry, &program);
  }
  if (damage == EntryDamage::kNone) {
    SetUsed(folder_, name, absl::Now());
    MutexLock lock(&mutex_);
    ++stats_.loaded;
    return program;
  }
  // An entry that the system cannot read just now may be whole.
  const bool removed = damage != EntryDamage::kIo && unlinkat(folder_, name.c_str(), 0) == 0;
  {
    MutexLock lock(&mutex_);
    ++stats_.load_errors[static_cast<size_t>(damage)];
    if (removed && IsEntry(info)) CountRemovedLocked(static_cast<int64_t>(info.st_size));
  }
  return refuse(absl::StrCat("the entry on disk of the program \"", fingerprint.ToHex(),
                             "\" cannot be used: ", Describe(damage), removed ? ", so it is removed" : ""));
}

bool ProgramStore::Contains(const Fingerprint& fingerprint) const {
  struct stat info {};
  return Look(folder_, EntryName(fingerprint), &info) && IsEntry(info);
}

std::vector<Fingerprint> ProgramStore::List() const {
  std::vector<File> files = Scan();
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used > b.used; });
  std::vector<Fingerprint> fingerprints;
  fingerprints.reserve(files.size());
  for (const File& file : files) fingerprints.push_back(file.fingerprint);
  return fingerprints;
}

bool ProgramStore::Remove(const Fingerprint& fingerprint) {
  const std::string name = EntryName(fingerprint);
  struct stat info {};
  if (!Look(folder_, name, &info) || unlinkat(folder_, name.c_str(), 0) != 0) return false;
  if (!IsEntry(info)) return false;
  MutexLock lock(&mutex_);
  CountRemovedLocked(static_cast<int64_t>(info.st_size));
  ++stats_.removed;
  return true;
}

void ProgramStore::CountRemovedLocked(int64_t bytes) {
  stats_.entries = std::max<int64_t>(0, stats_.entries - 1);
  stats_.bytes = std::max<int64_t>(0, stats_.bytes - bytes);
}

void ProgramStore::Flush() {
  MutexLock lock(&mutex_);
  const uint64_t put = put_;
  while (done_ < put || must_trim_) changed_.Wait(&mutex_);
}

ProgramStore::Stats ProgramStore::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

EntryDamage ProgramStore::Read(const std::string& name, std::string* bytes) const {
  const Descriptor file(openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.ok()) return errno == ELOOP ? EntryDamage::kFormat : EntryDamage::kIo;
  struct stat info {};
  if (fstat(file.number(), &info) != 0) return EntryDamage::kIo;
  if (!IsEntry(info)) return EntryDamage::kFormat;
  bytes->resize(static_cast<size_t>(info.st_size));
  return ReadAll(file.number(), bytes) ? EntryDamage::kNone : EntryDamage::kIo;
}

std::vector<ProgramStore::File> ProgramStore::Scan(std::vector<std::string>* damaged) const {
  std::vector<File> files;
  ForEachName(folder_, [&](std::string name) {
    if (!absl::EndsWith(name, kEntryEnding)) return;
    const auto fingerprint = Fingerprint::FromHex(absl::StripSuffix(name, kEntryEnding));
    struct stat info {};
    if (!fingerprint.has_value() || !Look(folder_, name, &info) || S_ISDIR(info.st_mode)) return;
    if (!IsEntry(info)) {
      if (damaged != nullptr) damaged->push_back(std::move(name));
      return;
    }
    files.push_back({.name = std::move(name),
                     .fingerprint = *fingerprint,
                     .bytes = static_cast<int64_t>(info.st_size),
                     .used = absl::TimeFromTimespec(info.st_mtim)});
  });
  return files;
}

// A living server holds a lock on the file that it writes.
void ProgramStore::RemoveLeftovers() {
  ForEachName(folder_, [this](const std::string& name) {
    if (!absl::EndsWith(name, kUnfinishedEnding)) return;
    const Descriptor file(openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.ok() && flock(file.number(), LOCK_EX | LOCK_NB) == 0) unlinkat(folder_, name.c_str(), 0);
  });
}

void ProgramStore::Trim() {
  std::vector<std::string> damaged;
  std::vector<File> files = Scan(&damaged);
  RemoveDamaged(damaged);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  int64_t bytes = 0, entries = static_cast<int64_t>(files.size()), evictions = 0;
  for (const File& file : files) bytes += file.bytes;
  // Some room at once, so that not every write has to look through the folder.
  const int64_t most = max_bytes();
  const int64_t wanted = bytes > most ? most - most / 8 : bytes;
  for (const File& file : files) {
    if (bytes <= wanted) break;
    if (unlinkat(folder_, file.name.c_str(), 0) != 0 && errno != ENOENT) continue;  // gone: another server's doing
    bytes -= file.bytes;
    --entries;
    ++evictions;
  }
  written_since_scan_ = 0;
  MutexLock lock(&mutex_);
  stats_.bytes = bytes;
  stats_.entries = entries;
  stats_.evictions += evictions;
}

void ProgramStore::TrimAnew() {
  const int64_t most = max_bytes();
  Trim();
  MutexLock lock(&mutex_);
  must_trim_ = max_bytes_ != most;
  changed_.SignalAll();
}

void ProgramStore::SetMaxBytes(int64_t max_bytes) {
  {
    MutexLock lock(&mutex_);
    if (max_bytes == max_bytes_) return;
    max_bytes_ = max_bytes;
    must_trim_ = true;
  }
  changed_.SignalAll();
}

int64_t ProgramStore::max_bytes() const {
  MutexLock lock(&mutex_);
  return max_bytes_;
}

void ProgramStore::RemoveDamaged(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (unlinkat(folder_, name.c_str(), 0) != 0) continue;
    {
      MutexLock lock(&mutex_);
      ++stats_.load_errors[static_cast<size_t>(EntryDamage::kFormat)];
    }
    Warn("program store damaged", absl::StrCat(options_.folder, "/", name, " is no file, or larger than ",
                                               kMaxEntryBytes, " bytes, as no program is, so it is removed"));
  }
}

void ProgramStore::Warn(absl::string_view event, const std::string& message) const {
  if (options_.warn) options_.warn(event, message);
}

void ProgramStore::WriteLoop() {
  LowerThisThread(kNiceness);
  auto next_uses = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.uses_period);
  auto end = std::chrono::steady_clock::time_point::max();  // of writing, when the store ends
  std::optional<Pending> pending;
  bool trims = false;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (pending.has_value()) ++done_;
      pending.reset();
      changed_.SignalAll();
      while (waiting_.empty() && !stopping_ && !must_trim_ && changed_.WaitUntil(&mutex_, next_uses)) {
      }
      trims = must_trim_;
      if (stopping_ && end > std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.end_within)) {
        end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.end_within);
      }
      if (waiting_.empty() || std::chrono::steady_clock::now() >= end) {
        stats_.left_out += static_cast<int64_t>(waiting_.size());
        if (stopping_) break;
      } else {
        pending = std::move(waiting_.front());
        waiting_.pop_front();
        waiting_bytes_ -= pending->constant_bytes;
      }
    }
    if (std::chrono::steady_clock::now() >= next_uses) {
      WriteUses();
      next_uses = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.uses_period);
    }
    if (trims) TrimAnew();
    if (!pending.has_value()) continue;
    try {
      Write(*pending);
    } catch (const std::exception&) {  // out of memory for the text
      MutexLock lock(&mutex_);
      ++stats_.left_out;
    }
  }
  WriteUses();
}

void ProgramStore::WriteUses() {
  if (!options_.uses) return;
  for (const Use& use : options_.uses()) SetUsed(folder_, EntryName(use.fingerprint), use.time);
}

void ProgramStore::Write(const Pending& pending) {
  const std::string name = EntryName(pending.fingerprint);
  if (HasWhole(pending.fingerprint)) return SetUsed(folder_, name, absl::Now());
  const int64_t most = std::min(kMaxEntryBytes, max_bytes());
  const std::string bytes = EncodeStoredProgram(pending.graph, pending.settings, pending.fingerprint);
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (size > most) {
    MutexLock lock(&mutex_);
    ++stats_.left_out;
    return;
  }
  const bool written = WriteFile(name, bytes);
  TellOfWrite(written, written ? 0 : errno);
  bool too_much = false;
  {
    MutexLock lock(&mutex_);
    if (!written) {
      ++stats_.write_errors;
      return;
    }
    ++stats_.written;
    ++stats_.entries;
    stats_.bytes += size;
    too_much = stats_.bytes > max_bytes_;
  }
  if (++written_since_scan_ >= kWritesBetweenScans || too_much) Trim();
}

bool ProgramStore::HasWhole(const Fingerprint& fingerprint) {
  const std::string name = EntryName(fingerprint);
  struct stat info {};
  if (!Look(folder_, name, &info) || !IsEntry(info)) return false;
  std::string bytes;
  EntryDamage damage = Read(name, &bytes);
  if (damage == EntryDamage::kNone) damage = CheckStoredProgram(bytes, fingerprint);
  if (damage == EntryDamage::kNone) return true;
  // An entry that the system cannot read just now may be whole; writing it anew harms nobody.
  const bool removed = damage != EntryDamage::kIo && unlinkat(folder_, name.c_str(), 0) == 0;
  {
    MutexLock lock(&mutex_);
    ++stats_.load_errors[static_cast<size_t>(damage)];
    if (removed) CountRemovedLocked(static_cast<int64_t>(info.st_size));
  }
  if (damage != EntryDamage::kVersion) {
    Warn("program store damaged",
         absl::StrCat(options_.folder, "/", name, " cannot be used: ", Describe(damage), "; it is written anew"));
  }
  return false;
}

void ProgramStore::TellOfWrite(bool written, int error) {
  if (written && failed_writes_ > 0) {
    Warn("program store writes again",
         absl::StrCat("programs are written to ", options_.folder, " again; ", failed_writes_, " were not"));
  }
  if (written) {
    failed_writes_ = 0;
  } else if (failed_writes_++ == 0) {
    Warn("program store cannot write", absl::StrCat("a program cannot be written to ", options_.folder, ": ",
                                                    std::strerror(error), "; another line tells when one can again"));
  }
}

bool ProgramStore::WriteFile(const std::string& name, const std::string& bytes) {
  const std::string unfinished = UnfinishedName();
  const Descriptor file(openat(folder_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.ok()) return false;
  const bool in_place = flock(file.number(), LOCK_EX | LOCK_NB) == 0 && WriteAll(file.number(), bytes) &&
                        fsync(file.number()) == 0 && renameat(folder_, unfinished.c_str(), folder_, name.c_str()) == 0;
  if (!in_place) {
    const int error = errno;
    unlinkat(folder_, unfinished.c_str(), 0);
    errno = error;
    return false;
  }
  fsync(folder_);  // the name; without it the entry is only missing after a crash of the machine
  return true;
}

}  // namespace tensord
