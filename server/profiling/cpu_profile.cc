#include "server/profiling/cpu_profile.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/debugging/symbolize.h"
#include "absl/strings/str_cat.h"
#include "server/profiling/executable_map.h"

namespace tensord::server {
namespace {

using perftools::profiles::Profile;

std::vector<CodeRange> CodeOfThisProcess() {
  std::ifstream file("/proc/self/maps");
  return ParseCodeRanges(std::string(std::istreambuf_iterator<char>(file), {}));
}

// Builds one profile. Confined to a thread.
class ProfileBuilder {
 public:
  explicit ProfileBuilder(Profile* profile) : profile_(*profile), code_(CodeOfThisProcess()) {
    Text("");
    for (const CodeRange& range : code_) {
      auto* mapping = profile_.add_mapping();
      mapping->set_id(static_cast<uint64_t>(profile_.mapping_size()));
      mapping->set_memory_start(range.begin);
      mapping->set_memory_limit(range.end);
      mapping->set_file_offset(range.file_offset);
      mapping->set_filename(Text(range.file));
      mapping->set_has_functions(true);
    }
  }

  int64_t Text(const std::string& text) {
    const auto [place, is_new] = texts_.try_emplace(text, profile_.string_table_size());
    if (is_new) profile_.add_string_table(text);
    return place->second;
  }

  // `is_return`: the call is before it.
  uint64_t Location(uintptr_t counter, bool is_return) {
    const uintptr_t address = is_return ? counter - 1 : counter;
    uint64_t& id = locations_[address];
    if (id != 0) return id;
    auto* location = profile_.add_location();
    id = static_cast<uint64_t>(profile_.location_size());
    location->set_id(id);
    location->set_address(address);
    const CodeRange* range = FindCode(code_, address);
    if (range != nullptr) location->set_mapping_id(static_cast<uint64_t>(range - code_.data()) + 1);
    location->add_line()->set_function_id(Function(NameOf(address, range), range));
    return id;
  }

 private:
  static std::string NameOf(uintptr_t address, const CodeRange* range) {
    char name[1024];
    if (absl::Symbolize(reinterpret_cast<const void*>(address), name, sizeof(name))) return name;
    if (range == nullptr || range->file.empty()) return "[made code]";
    return absl::StrCat("[", range->file.substr(range->file.rfind('/') + 1), "]");
  }

  uint64_t Function(const std::string& name, const CodeRange* range) {
    uint64_t& id = functions_[name];
    if (id != 0) return id;
    auto* function = profile_.add_function();
    id = static_cast<uint64_t>(profile_.function_size());
    function->set_id(id);
    function->set_name(Text(name));
    function->set_system_name(function->name());
    if (range != nullptr) function->set_filename(Text(range->file));
    return id;
  }

  Profile& profile_;
  const std::vector<CodeRange> code_;
  absl::flat_hash_map<std::string, int64_t> texts_;
  absl::flat_hash_map<uintptr_t, uint64_t> locations_;
  absl::flat_hash_map<std::string, uint64_t> functions_;
};

}  // namespace

Profile MakeCpuProfile(const StackSampler::Stacks& stacks, const ProfileTime& time) {
  std::map<std::vector<uintptr_t>, int64_t> counts;
  size_t at = 0;
  for (int64_t i = 0; i < stacks.count; ++i) {
    const uintptr_t depth = stacks.words[at];
    const auto begin = stacks.words.begin() + static_cast<ptrdiff_t>(at) + 1;
    ++counts[{begin, begin + static_cast<ptrdiff_t>(depth)}];
    at += depth + 1;
  }
  Profile profile;
  ProfileBuilder builder(&profile);
  const int64_t period = 1'000'000'000 / time.per_second;
  auto* number = profile.add_sample_type();
  number->set_type(builder.Text("samples"));
  number->set_unit(builder.Text("count"));
  auto* processor = profile.add_sample_type();
  processor->set_type(builder.Text("cpu"));
  processor->set_unit(builder.Text("nanoseconds"));
  *profile.mutable_period_type() = *processor;
  profile.set_period(period);
  profile.set_time_nanos(absl::ToUnixNanos(time.start));
  profile.set_duration_nanos(absl::ToInt64Nanoseconds(time.duration));
  for (const auto& [stack, count] : counts) {
    auto* sample = profile.add_sample();
    for (size_t i = 0; i < stack.size(); ++i) sample->add_location_id(builder.Location(stack[i], i > 0));
    sample->add_value(count);
    sample->add_value(count * period);
  }
  return profile;
}

}  // namespace tensord::server
