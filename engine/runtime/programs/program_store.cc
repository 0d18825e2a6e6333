#include "engine/runtime/programs/program_store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/refusal.h"
#include "engine/base/thread_niceness.h"
#include "engine/ir/parser.h"
#include "engine/runtime/programs/constant_bytes.h"
#include "engine/runtime/programs/program_folder.h"

namespace tensord {
namespace {

constexpr absl::string_view kEntryEnding = ".program";
static_assert(kMaxEntryBytes <= static_cast<int64_t>(kMaxGraphTextBytes), "what is written can be read");
constexpr int kNiceness = 19;  // the lowest priority that there is
// Other servers write into the folder too, which only a scan sees.
constexpr int64_t kWritesBetweenScans = 256;

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramStore>> ProgramStore::Open(Options options) {
  const std::string path = options.folder;
  absl::StatusOr<std::unique_ptr<EntryFolder>> folder =
      EntryFolder::Open(path, {.ending = std::string(kEntryEnding), .most_bytes = kMaxEntryBytes});
  if (!folder.ok()) return ProgramFolderError(path, folder.status().message());
  std::unique_ptr<ProgramStore> store(new ProgramStore(std::move(options), *std::move(folder)));
  if (const mode_t mode = store->folder_->opened_with(); mode != 0) {
    store->Warn("program folder closed", absl::StrCat("the folder of programs, ", path, ", was open to others (mode ",
                                                      absl::StrFormat("%04o", mode), "); it is 0700 now"));
  }
  store->folder_->RemoveLeftovers();
  store->Trim();
  store->writer_ = std::thread([raw = store.get()] { raw->WriteLoop(); });
  return store;
}

ProgramStore::ProgramStore(Options options, std::unique_ptr<EntryFolder> folder)
    : options_(std::move(options)), folder_(std::move(folder)), max_bytes_(options_.max_bytes) {}

ProgramStore::~ProgramStore() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  if (writer_.joinable()) writer_.join();
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
  const auto refuse = [&](absl::string_view what) {
    return Refuse(Refusal::kProgramNotFound, absl::StrCat(what, "; compile the graph again and repeat the call"));
  };
  const int64_t size = folder_->BytesOf(fingerprint);
  if (size < 0) {
    return refuse(absl::StrCat("no program here has the fingerprint \"", fingerprint.ToHex(), "\""));
  }
  const bool is_entry = folder_->Has(fingerprint);
  std::string bytes;
  StoredProgram program;
  EntryDamage damage = Read(fingerprint, &bytes);
  if (damage == EntryDamage::kNone) {
    damage = DecodeStoredProgram(bytes, fingerprint, *options_.registry, &program);
  }
  if (damage == EntryDamage::kNone) {
    folder_->SetUsed(fingerprint, absl::Now());
    MutexLock lock(&mutex_);
    ++stats_.loaded;
    return program;
  }
  // An entry that the system cannot read just now may be whole.
  const bool removed = damage != EntryDamage::kIo && folder_->Remove(folder_->NameOf(fingerprint));
  {
    MutexLock lock(&mutex_);
    ++stats_.load_errors[static_cast<size_t>(damage)];
    if (removed && is_entry) CountRemovedLocked(size);
  }
  return refuse(absl::StrCat("the entry on disk of the program \"", fingerprint.ToHex(),
                             "\" cannot be used: ", Describe(damage), removed ? ", so it is removed" : ""));
}

bool ProgramStore::Contains(const Fingerprint& fingerprint) const { return folder_->Has(fingerprint); }

std::vector<Fingerprint> ProgramStore::List() const {
  std::vector<EntryFolder::Entry> entries = folder_->List();
  std::sort(entries.begin(), entries.end(),
            [](const EntryFolder::Entry& a, const EntryFolder::Entry& b) { return a.used > b.used; });
  std::vector<Fingerprint> fingerprints;
  fingerprints.reserve(entries.size());
  for (const EntryFolder::Entry& entry : entries) fingerprints.push_back(entry.fingerprint);
  return fingerprints;
}

bool ProgramStore::Remove(const Fingerprint& fingerprint) {
  const bool is_entry = folder_->Has(fingerprint);
  const int64_t size = folder_->BytesOf(fingerprint);
  if (size < 0 || !folder_->Remove(folder_->NameOf(fingerprint)) || !is_entry) return false;
  MutexLock lock(&mutex_);
  CountRemovedLocked(size);
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

EntryDamage ProgramStore::Read(const Fingerprint& fingerprint, std::string* bytes) const {
  switch (folder_->Read(fingerprint, bytes)) {
    case EntryFolder::ReadResult::kRead:
      return EntryDamage::kNone;
    case EntryFolder::ReadResult::kForeign:
      return EntryDamage::kFormat;
    case EntryFolder::ReadResult::kIo:
      break;
  }
  return EntryDamage::kIo;
}

void ProgramStore::Trim() {
  std::vector<std::string> damaged;
  folder_->List(&damaged);
  RemoveDamaged(damaged);
  const EntryFolder::Trimmed trimmed = folder_->Trim(max_bytes());
  written_since_scan_ = 0;
  MutexLock lock(&mutex_);
  stats_.bytes = trimmed.bytes;
  stats_.entries = trimmed.entries;
  stats_.evictions += trimmed.evictions;
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
    if (!folder_->Remove(name)) continue;
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
  for (const Use& use : options_.uses()) folder_->SetUsed(use.fingerprint, use.time);
}

void ProgramStore::Write(const Pending& pending) {
  if (HasWhole(pending.fingerprint)) return folder_->SetUsed(pending.fingerprint, absl::Now());
  const int64_t most = std::min(kMaxEntryBytes, max_bytes());
  const std::string bytes = EncodeStoredProgram(pending.graph, pending.settings, pending.fingerprint);
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (size > most) {
    MutexLock lock(&mutex_);
    ++stats_.left_out;
    return;
  }
  const bool written = folder_->Write(pending.fingerprint, bytes);
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
  if (!folder_->Has(fingerprint)) return false;
  const int64_t size = folder_->BytesOf(fingerprint);
  const std::string name = folder_->NameOf(fingerprint);
  std::string bytes;
  EntryDamage damage = Read(fingerprint, &bytes);
  if (damage == EntryDamage::kNone) damage = CheckStoredProgram(bytes, fingerprint);
  if (damage == EntryDamage::kNone) return true;
  // An entry that the system cannot read just now may be whole; writing it anew harms nobody.
  const bool removed = damage != EntryDamage::kIo && folder_->Remove(name);
  {
    MutexLock lock(&mutex_);
    ++stats_.load_errors[static_cast<size_t>(damage)];
    if (removed) CountRemovedLocked(size);
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

}  // namespace tensord
