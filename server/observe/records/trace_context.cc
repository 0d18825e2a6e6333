#include "server/observe/records/trace_context.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tensord::server {
namespace {

// VERSION-TRACE_ID-PARENT_ID-FLAGS
constexpr size_t kTraceIdAt = 3, kSpanIdAt = 36, kFlagsAt = 53, kLength = 55;
constexpr size_t kMaxMembers = 32, kMaxKey = 256, kMaxValue = 256;
constexpr size_t kMaxStateBytes = 512, kLongMember = 128;

// Returns the value of a lower-case digit; -1 for anything else.
int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

template <size_t N>
bool ReadHex(absl::string_view text, std::array<uint8_t, N>* bytes) {
  for (size_t i = 0; i < N; ++i) {
    const int high = HexValue(text[2 * i]), low = HexValue(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*bytes)[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

bool IsKeyStart(char c) {
  return absl::ascii_islower(static_cast<unsigned char>(c)) || absl::ascii_isdigit(static_cast<unsigned char>(c));
}

bool IsKey(absl::string_view key) {
  if (key.empty() || key.size() > kMaxKey || !IsKeyStart(key[0])) return false;
  return std::all_of(key.begin(), key.end(),
                     [](char c) { return IsKeyStart(c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@'; });
}

bool IsValue(absl::string_view value) {
  if (value.empty() || value.size() > kMaxValue || value.back() == ' ') return false;
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

// Drops whole members until the rest is short enough.
void Shorten(std::vector<absl::string_view>* members) {
  size_t length = members->empty() ? 0 : members->size() - 1;
  for (const absl::string_view member : *members) length += member.size();
  const auto drop = [&](size_t i) {
    length -= (*members)[i].size() + 1;
    members->erase(members->begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (size_t i = members->size(); length > kMaxStateBytes && i-- > 0;) {
    if ((*members)[i].size() > kLongMember) drop(i);
  }
  while (length > kMaxStateBytes) drop(members->size() - 1);
}

// Returns bits of SplitMix64 [Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014]: eight bytes
// a thread. The state of a larger generator would come from the stack of every thread, and those that serve the metrics
// have little.
uint64_t RandomBits() {
  thread_local uint64_t state = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  state += 0x9e3779b97f4a7c15;
  uint64_t bits = state;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

template <typename Id>
Id NewId() {
  Id id{};
  while (id == Id{}) {
    for (size_t i = 0; i < id.size(); i += sizeof(uint64_t)) {
      const uint64_t bits = RandomBits();
      std::memcpy(id.data() + i, &bits, sizeof(bits));
    }
  }
  return id;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(absl::string_view value) {
  if (value.size() < kLength) return std::nullopt;
  std::array<uint8_t, 1> version{}, flags{};
  TraceContext context;
  const bool is_hex = ReadHex(value, &version) && ReadHex(value.substr(kTraceIdAt), &context.trace_id) &&
                      ReadHex(value.substr(kSpanIdAt), &context.span_id) && ReadHex(value.substr(kFlagsAt), &flags);
  if (!is_hex || value[kTraceIdAt - 1] != '-' || value[kSpanIdAt - 1] != '-' || value[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  if (version[0] == 0xFF || !IsSet(context.trace_id) || context.span_id == SpanId{}) return std::nullopt;
  if (value.size() > kLength && (version[0] == 0 || value[kLength] != '-')) return std::nullopt;
  context.sampled = (flags[0] & 1) != 0;
  return context;
}

std::optional<std::string> ParseTracestate(absl::string_view value) {
  std::vector<absl::string_view> members, keys;
  for (absl::string_view member : absl::StrSplit(value, ',')) {
    while (!member.empty() && (member.front() == ' ' || member.front() == '\t')) member.remove_prefix(1);
    while (!member.empty() && (member.back() == ' ' || member.back() == '\t')) member.remove_suffix(1);
    if (member.empty()) continue;
    const size_t equals = member.find('=');
    if (equals == absl::string_view::npos || members.size() == kMaxMembers) return std::nullopt;
    const absl::string_view key = member.substr(0, equals);
    if (!IsKey(key) || !IsValue(member.substr(equals + 1))) return std::nullopt;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return std::nullopt;
    keys.push_back(key);
    members.push_back(member);
  }
  Shorten(&members);
  return absl::StrJoin(members, ",");
}

std::string ToHex(const TraceId& id) {
  if (!IsSet(id)) return "";
  return absl::BytesToHexString({reinterpret_cast<const char*>(id.data()), id.size()});
}

TraceId NewTraceId() { return NewId<TraceId>(); }
SpanId NewSpanId() { return NewId<SpanId>(); }

}  // namespace tensord::server
