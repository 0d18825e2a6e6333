#include "server/observe/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/control_group.h"
#include "server/observe/metrics/metric_sample.h"

namespace tensord::server {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the value after `key` at the beginning of a line; empty if no line begins so.
absl::string_view LineAfter(absl::string_view text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, key)) return line;
  }
  return {};
}

std::optional<double> OpenDescriptors() {
  std::error_code error;
  std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
  if (error) return std::nullopt;
  double count = 0;
  for (; descriptors != std::filesystem::directory_iterator(); descriptors.increment(error)) {
    if (error) return std::nullopt;
    ++count;
  }
  return count - 1;  // without the one that lists them
}

double MaxDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kInfinity;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(absl::string_view text) {
  // The name of the program may hold anything, a parenthesis too.
  const size_t name_end = text.rfind(')');
  if (name_end == absl::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text.substr(name_end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  ProcessStat stat;
  const auto read = [&fields](size_t number, int64_t* value) {  // as proc(5) numbers them; the third is the first here
    return number - 3 < fields.size() && absl::SimpleAtoi(fields[number - 3], value);
  };
  const bool is_whole = read(14, &stat.user_ticks) && read(15, &stat.system_ticks) && read(20, &stat.threads) &&
                        read(22, &stat.start_ticks) && read(23, &stat.virtual_bytes) && read(24, &stat.resident_pages);
  if (!is_whole) return std::nullopt;
  return stat;
}

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  if (const std::optional<ProcessStat> stat = ParseProcessStat(TextOf("/proc/self/stat"))) {
    const auto tick = static_cast<double>(sysconf(_SC_CLK_TCK));
    const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
    families.push_back(
        FamilyOf(Metric::process_cpu_seconds, static_cast<double>(stat->user_ticks + stat->system_ticks) / tick));
    families.push_back(
        FamilyOf(Metric::process_resident_memory_bytes, static_cast<double>(stat->resident_pages) * page));
    families.push_back(FamilyOf(Metric::process_threads, static_cast<double>(stat->threads)));
    families.push_back(FamilyOf(Metric::process_virtual_memory_bytes, static_cast<double>(stat->virtual_bytes)));
    double boot = 0;
    if (absl::SimpleAtod(LineAfter(TextOf("/proc/stat"), "btime "), &boot)) {
      families.push_back(FamilyOf(Metric::process_start_time, boot + static_cast<double>(stat->start_ticks) / tick));
    }
  }
  if (const std::optional<double> open = OpenDescriptors()) {
    families.push_back(FamilyOf(Metric::process_open_fds, *open));
  }
  families.push_back(FamilyOf(Metric::process_max_fds, MaxDescriptors()));
  families.push_back(FamilyOf(Metric::memory_limit_bytes, static_cast<double>(UsableMemoryBytes())));
  return families;
}

}  // namespace tensord::server
