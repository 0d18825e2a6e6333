#include "clients/cli/programs/profile_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

namespace tensord::cli {
namespace {

struct Row {
  std::string name;
  int64_t self = 0;
  int64_t with_callees = 0;
};

std::map<uint64_t, std::string> NamesByFunction(const perftools::profiles::Profile& profile) {
  std::map<uint64_t, std::string> names;
  for (const auto& function : profile.function()) {
    if (function.name() < 0 || function.name() >= profile.string_table_size()) continue;
    names[function.id()] = profile.string_table(static_cast<int>(function.name()));
  }
  return names;
}

}  // namespace

std::string ProfileTable(const perftools::profiles::Profile& profile, size_t rows) {
  const std::map<uint64_t, std::string> names = NamesByFunction(profile);
  std::map<uint64_t, std::vector<uint64_t>> functions;  // by location
  for (const auto& location : profile.location()) {
    for (const auto& line : location.line()) {
      if (names.count(line.function_id()) > 0) functions[location.id()].push_back(line.function_id());
    }
  }
  std::map<uint64_t, Row> by_function;
  int64_t all = 0;
  for (const auto& sample : profile.sample()) {
    const int64_t count = sample.value_size() > 0 ? sample.value(0) : 0;
    all += count;
    std::set<uint64_t> met;  // one that calls itself is there once
    for (int i = 0; i < sample.location_id_size(); ++i) {
      const auto found = functions.find(sample.location_id(i));
      if (found == functions.end()) continue;
      if (i == 0) by_function[found->second.front()].self += count;
      met.insert(found->second.begin(), found->second.end());
    }
    for (const uint64_t function : met) by_function[function].with_callees += count;
  }
  std::vector<Row> sorted;
  for (auto& [function, row] : by_function) sorted.push_back({names.at(function), row.self, row.with_callees});
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
    return std::pair(a.self, a.with_callees) > std::pair(b.self, b.with_callees);
  });
  if (sorted.size() > rows) sorted.resize(rows);
  std::string text = "   self   with callees   function\n";
  for (const Row& row : sorted) {
    const double percent = all > 0 ? 100.0 / static_cast<double>(all) : 0;
    absl::StrAppendFormat(&text, "%6.1f%%        %6.1f%%   %s\n", static_cast<double>(row.self) * percent,
                          static_cast<double>(row.with_callees) * percent, row.name);
  }
  return text;
}

}  // namespace tensord::cli
