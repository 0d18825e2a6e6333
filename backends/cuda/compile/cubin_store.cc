#include "backends/cuda/compile/cubin_store.h"

#include <chrono>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "engine/base/allocated_bytes.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cuda {
namespace {

constexpr absl::string_view kEnding = ".cubin", kBegin = "tensord cubin 1\n";
// Kernels are some tens of KiB; NVIDIA's largest are a few MiB.
constexpr int64_t kMostEntryBytes = int64_t{64} << 20;

// Each part with its length, so that no two sources are one text.
void AddPart(absl::string_view part, std::string* text) { absl::StrAppend(text, part.size(), ":", part, "\n"); }

std::string EntryOf(const std::string& image) {
  return absl::StrCat(kBegin, Fingerprint::Of(image).ToHex(), "\n", image);
}

// Returns the code of an entry; false if its bytes are not what was written.
bool TakeImage(absl::string_view entry, std::string* image) {
  constexpr size_t kDigits = 2 * Fingerprint::kBytes;
  if (!absl::ConsumePrefix(&entry, kBegin) || entry.size() <= kDigits || entry[kDigits] != '\n') return false;
  const absl::string_view code = entry.substr(kDigits + 1);
  if (Fingerprint::Of(code).ToHex() != entry.substr(0, kDigits)) return false;
  image->assign(code.data(), code.size());
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CubinStore>> CubinStore::Open(Options options) {
  if (options.folder.empty()) return std::unique_ptr<CubinStore>(new CubinStore(std::move(options), nullptr));
  absl::StatusOr<std::unique_ptr<EntryFolder>> folder =
      EntryFolder::Open(options.folder, {.ending = std::string(kEnding), .most_bytes = kMostEntryBytes});
  if (!folder.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the folder of kernels, ", options.folder, ", ", folder.status().message()));
  }
  (*folder)->RemoveLeftovers();
  const EntryFolder::Trimmed trimmed = (*folder)->Trim(options.disk_bytes);
  std::unique_ptr<CubinStore> store(new CubinStore(std::move(options), *std::move(folder)));
  MutexLock lock(&store->mutex_);
  store->disk_bytes_ = trimmed.bytes;
  return store;
}

Fingerprint CubinStore::KeyOf(const Source& source) {
  std::string text;
  for (const absl::string_view part : {source.text, source.compiler, source.architecture}) AddPart(part, &text);
  for (const absl::string_view option : source.options) AddPart(option, &text);
  return Fingerprint::Of(text);
}

absl::StatusOr<CubinStore::Image> CubinStore::Get(const Source& source,
                                                  absl::FunctionRef<absl::StatusOr<std::string>()> compile) {
  const Fingerprint key = KeyOf(source);
  {
    MutexLock lock(&mutex_);
    while (true) {
      if (Image found = FindLocked(key); found != nullptr) return found;
      if (making_.insert(key).second) break;
      RETURN_IF_ERROR(WaitUnlessStopped(&made_, &mutex_));
    }
  }
  // Also where memory ends on the way: others wait for this.
  const absl::Cleanup made = [&] {
    MutexLock lock(&mutex_);
    making_.erase(key);
    made_.SignalAll();
  };
  absl::StatusOr<Image> image = Make(key, compile);
  if (!image.ok()) return image;
  MutexLock lock(&mutex_);
  KeepLocked(key, *image);
  return image;
}

void CubinStore::Forget(const Source& source) {
  const Fingerprint key = KeyOf(source);
  if (folder_ != nullptr) folder_->Remove(folder_->NameOf(key));
  MutexLock lock(&mutex_);
  ++stats_.damaged;
  const auto found = places_.find(key);
  if (found == places_.end()) return;
  kept_bytes_ -= static_cast<int64_t>(found->second->image->size());
  kept_.erase(found->second);
  places_.erase(found);
}

absl::StatusOr<CubinStore::Image> CubinStore::Make(const Fingerprint& key,
                                                   absl::FunctionRef<absl::StatusOr<std::string>()> compile) {
  if (Image read = Read(key); read != nullptr) return read;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<std::string> compiled = compile();
  const absl::Duration took = absl::FromChrono(std::chrono::steady_clock::now() - start);
  if (compiled.ok()) Write(key, *compiled);
  MutexLock lock(&mutex_);
  ++(compiled.ok() ? stats_.compiled : stats_.refused);
  stats_.compiling += took;
  if (!compiled.ok()) return compiled.status();
  return std::make_shared<const std::string>(*std::move(compiled));
}

CubinStore::Image CubinStore::FindLocked(const Fingerprint& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found->second);
  ++stats_.from_memory;
  return found->second->image;
}

void CubinStore::KeepLocked(const Fingerprint& key, Image image) {
  kept_bytes_ += static_cast<int64_t>(image->size());
  kept_.push_front({.key = key, .image = std::move(image)});
  places_[key] = kept_.begin();
  const AllocatedBytes::Pause others;
  while (kept_bytes_ > options_.memory_bytes) {
    kept_bytes_ -= static_cast<int64_t>(kept_.back().image->size());
    places_.erase(kept_.back().key);
    kept_.pop_back();
  }
}

CubinStore::Image CubinStore::Read(const Fingerprint& key) {
  if (folder_ == nullptr) return nullptr;
  std::string entry, image;
  const EntryFolder::ReadResult read = folder_->Read(key, &entry);
  // An entry that the system cannot read just now may be whole.
  if (read == EntryFolder::ReadResult::kIo) return nullptr;
  if (read == EntryFolder::ReadResult::kRead && TakeImage(entry, &image)) {
    folder_->SetUsed(key, absl::Now());
    MutexLock lock(&mutex_);
    ++stats_.from_disk;
    return std::make_shared<const std::string>(std::move(image));
  }
  folder_->Remove(folder_->NameOf(key));
  MutexLock lock(&mutex_);
  ++stats_.damaged;
  return nullptr;
}

void CubinStore::Write(const Fingerprint& key, const std::string& image) {
  if (folder_ == nullptr) return;
  const std::string entry = EntryOf(image);
  const int64_t bytes = static_cast<int64_t>(entry.size());
  if (bytes > kMostEntryBytes || bytes > options_.disk_bytes) return;
  const bool is_written = folder_->Write(key, entry);
  {
    MutexLock lock(&mutex_);
    if (!is_written) {
      ++stats_.write_errors;
      return;
    }
    disk_bytes_ += bytes;
    if (disk_bytes_ <= options_.disk_bytes) return;
  }
  const EntryFolder::Trimmed trimmed = folder_->Trim(options_.disk_bytes);
  MutexLock lock(&mutex_);
  disk_bytes_ = trimmed.bytes;
}

CubinStore::Stats CubinStore::stats() const {
  MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.memory_bytes = kept_bytes_;
  stats.disk_bytes = disk_bytes_;
  return stats;
}

}  // namespace tensord::cuda
