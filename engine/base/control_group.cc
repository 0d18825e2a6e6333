#include "engine/base/control_group.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tensord {
namespace {

// Version 1 says "no bound" with the largest multiple of a page.
constexpr int64_t kUnbounded = int64_t{1} << 62;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns a positive number that bounds something; nothing for "max", -1, or anything but a number.
std::optional<int64_t> BoundIn(absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &value) || value <= 0 || value >= kUnbounded) {
    return std::nullopt;
  }
  return value;
}

template <typename Number>
void Lower(std::optional<Number> bound, std::optional<Number>* least) {
  if (bound.has_value() && (!least->has_value() || *bound < **least)) *least = bound;
}

// A hierarchy of groups: the folders of this process's group and of the groups above it.
struct Hierarchy {
  std::string mount;  // the folder at which it is seen
  std::string group;  // below the mount: "" or "/a/b"
  bool is_second_version = false;
};

// Returns the process's group in a line of /proc/self/cgroup, "4:cpu,cpuacct:/a" or, of version 2, "0::/a".
std::optional<std::string> GroupIn(absl::string_view line, absl::string_view controller) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
  if (fields.size() != 3) return std::nullopt;
  if (controller.empty())
    return fields[0] == "0" && fields[1].empty() ? std::optional(std::string(fields[2])) : std::nullopt;
  for (const absl::string_view name : absl::StrSplit(fields[1], ',')) {
    if (name == controller) return std::string(fields[2]);
  }
  return std::nullopt;
}

// Tells whether the comma-separated options have `wanted`.
bool HasOption(absl::string_view options, absl::string_view wanted) {
  for (const absl::string_view option : absl::StrSplit(options, ',')) {
    if (option == wanted) return true;
  }
  return false;
}

// Returns `group` as seen from a mount that shows the groups below `shown`. A group outside of them is seen as the
// mount itself.
std::string Below(absl::string_view group, absl::string_view shown) {
  if (shown != "/" && !absl::ConsumePrefix(&group, shown)) return "";
  if (group == "/" || (!group.empty() && group[0] != '/')) return "";
  return std::string(group);
}

// Returns the hierarchies of a controller that are mounted, as mountinfo has them: "31 23 0:28 ROOT POINT … - TYPE
// SOURCE OPTIONS".
std::vector<Hierarchy> HierarchiesOf(absl::string_view controller, const std::string& root) {
  std::optional<std::string> first, second;
  const std::string groups = TextOf(absl::StrCat(root, "/proc/self/cgroup"));
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    if (auto group = GroupIn(line, controller); group.has_value()) first = std::move(group);
    if (auto group = GroupIn(line, ""); group.has_value()) second = std::move(group);
  }
  std::vector<Hierarchy> hierarchies;
  const std::string mounts = TextOf(absl::StrCat(root, "/proc/self/mountinfo"));
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<absl::string_view> mount = absl::StrSplit(halves.first, ' ');
    const std::vector<absl::string_view> kind = absl::StrSplit(halves.second, ' ');
    if (mount.size() < 5 || kind.size() < 3) continue;
    const bool is_second = kind[0] == "cgroup2";
    if (!is_second && (kind[0] != "cgroup" || !HasOption(kind[2], controller))) continue;
    const std::optional<std::string>& group = is_second ? second : first;
    if (!group.has_value()) continue;
    hierarchies.push_back({absl::StrCat(root, mount[4]), Below(*group, mount[3]), is_second});
  }
  if (!hierarchies.empty()) return hierarchies;
  // Without a list of mounts they are where they are by convention.
  if (second.has_value()) {
    hierarchies.push_back({absl::StrCat(root, "/sys/fs/cgroup"), Below(*second, "/"), true});
  }
  if (first.has_value()) {
    hierarchies.push_back({absl::StrCat(root, "/sys/fs/cgroup/", controller), Below(*first, "/"), false});
  }
  return hierarchies;
}

// Lowers `least` to the least bound_of(folder) of the group and of those above it. If a folder of the group is missing,
// it is not shown; folders above it may be.
template <typename Number, typename Function>
void LowerByAll(const Hierarchy& hierarchy, Function&& bound_of, std::optional<Number>* least) {
  std::string group = hierarchy.group;
  while (true) {
    Lower<Number>(bound_of(absl::StrCat(hierarchy.mount, group)), least);
    if (group.empty()) return;
    group.resize(group.rfind('/'));
  }
}

std::optional<int> Processors(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota.has_value() || !period.has_value()) return std::nullopt;
  const int64_t processors = *quota / *period + (*quota % *period != 0 ? 1 : 0);
  return static_cast<int>(std::min<int64_t>(processors, std::numeric_limits<int>::max()));
}

// "QUOTA PERIOD", in microseconds.
std::optional<int> ProcessorsInMax(const std::string& text) {
  const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  return Processors(BoundIn(numbers.first), BoundIn(numbers.second));
}

// Returns the processors of this thread's affinity.
int AllowedProcessors() {
  for (int size = 1024; size <= 1 << 20; size *= 4) {
    cpu_set_t* const set = CPU_ALLOC(size);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(size);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

std::optional<int64_t> ControlGroupMemoryBytes(const std::string& root) {
  std::optional<int64_t> least;
  for (const Hierarchy& hierarchy : HierarchiesOf("memory", root)) {
    const char* const name = hierarchy.is_second_version ? "/memory.max" : "/memory.limit_in_bytes";
    LowerByAll(
        hierarchy, [name](const std::string& folder) { return BoundIn(TextOf(folder + name)); }, &least);
  }
  return least;
}

std::optional<int> ControlGroupProcessors(const std::string& root) {
  std::optional<int> least;
  for (const Hierarchy& hierarchy : HierarchiesOf("cpu", root)) {
    const auto bound_of = [&hierarchy](const std::string& folder) {
      if (hierarchy.is_second_version) return ProcessorsInMax(TextOf(folder + "/cpu.max"));
      return Processors(BoundIn(TextOf(folder + "/cpu.cfs_quota_us")), BoundIn(TextOf(folder + "/cpu.cfs_period_us")));
    };
    LowerByAll(hierarchy, bound_of, &least);
  }
  return least;
}

int64_t UsableMemoryBytes(const std::string& root) {
  const int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::min(machine, ControlGroupMemoryBytes(root).value_or(machine));
}

int UsableProcessors(const std::string& root) {
  const int allowed = AllowedProcessors();
  return std::min(allowed, ControlGroupProcessors(root).value_or(allowed));
}

}  // namespace tensord
