#include "backends/cpu/machine/cache_sizes.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tensord::cpu {
namespace {

std::string FirstWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "32768K" or "1M"; 0 if it is no size.
int64_t ParseBytes(absl::string_view text) {
  int64_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
    unit = text.back() == 'K' ? int64_t{1} << 10 : int64_t{1} << 20;
    text.remove_suffix(1);
  }
  int64_t count = 0;
  const bool is_size = absl::SimpleAtoi(text, &count) && count > 0 && count < (int64_t{1} << 30);
  return is_size ? count * unit : 0;
}

}  // namespace

CacheSizes ReadCacheSizes(absl::string_view folder) {
  CacheSizes sizes;
  int last_level = 1;
  for (int index = 0; index < 16; ++index) {
    const std::string cache = absl::StrCat(folder, "/index", index);
    const std::string type = FirstWord(absl::StrCat(cache, "/type"));
    if (type.empty()) break;
    int level = 0;
    const int64_t bytes = ParseBytes(FirstWord(absl::StrCat(cache, "/size")));
    if (type == "Instruction" || bytes == 0 || !absl::SimpleAtoi(FirstWord(absl::StrCat(cache, "/level")), &level)) {
      continue;
    }
    if (level == 1) sizes.l1 = bytes;
    if (level == 2) sizes.l2 = bytes;
    if (level > last_level) {
      last_level = level;
      sizes.last_level = bytes;
    }
  }
  return sizes;
}

const CacheSizes& MachineCacheSizes() {
  static const CacheSizes sizes = ReadCacheSizes("/sys/devices/system/cpu/cpu0/cache");
  return sizes;
}

}  // namespace tensord::cpu
