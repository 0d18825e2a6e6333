#include "tests/hostcuda/image_folder.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace tensord::cuda::host {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".image";
constexpr std::chrono::hours kMostAge{14 * 24};

// An entry begins with the sizes of the key and the image, which follow.
struct Sizes {
  uint64_t key = 0, image = 0;
};

// FNV-1a. Two keys with one name displace each other.
std::string NameOf(const std::string& key) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

void RemoveUnused(const std::string& folder) {
  std::error_code error;
  const auto oldest = fs::file_time_type::clock::now() - kMostAge;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const auto used = fs::last_write_time(it->path(), gone);
    if (!gone && used < oldest) fs::remove(it->path(), gone);
  }
}

}  // namespace

ImageFolder::ImageFolder(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::error_code error;
  fs::create_directories(path_, error);
  RemoveUnused(path_);
}

std::string ImageFolder::PlaceOf(const std::string& key) const { return path_ + "/" + NameOf(key) + kEnding; }

bool ImageFolder::Read(const std::string& key, std::string* image) const {
  if (path_.empty()) return false;
  const std::string place = PlaceOf(key);
  std::ifstream in(place, std::ios::binary);
  const std::string entry((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Sizes sizes;
  if (entry.size() < sizeof(sizes)) return false;
  std::memcpy(&sizes, entry.data(), sizeof(sizes));
  if (sizes.key != key.size() || entry.size() != sizeof(sizes) + sizes.key + sizes.image) return false;
  if (entry.compare(sizeof(sizes), key.size(), key) != 0) return false;
  *image = entry.substr(sizeof(sizes) + key.size());
  std::error_code error;
  fs::last_write_time(place, fs::file_time_type::clock::now(), error);
  return true;
}

void ImageFolder::Write(const std::string& key, const std::string& image) const {
  if (path_.empty()) return;
  std::string unfinished = path_ + "/XXXXXX";
  const int file = mkstemp(unfinished.data());
  if (file < 0) return;
  const Sizes sizes{key.size(), image.size()};
  std::string entry(reinterpret_cast<const char*>(&sizes), sizeof(sizes));
  entry += key;
  entry += image;
  size_t done = 0;
  while (done < entry.size()) {
    const ssize_t n = write(file, entry.data() + done, entry.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  close(file);
  if (done != entry.size() || std::rename(unfinished.c_str(), PlaceOf(key).c_str()) != 0) unlink(unfinished.c_str());
}

}  // namespace tensord::cuda::host
