#include "server/observe/logs/json_line.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

constexpr size_t kUsualBytes = 512;  // of a line about a call

// Returns the bytes of the UTF-8 sequence at the front of `text`, which is not empty; 0 if there is none. Overlong
// forms, surrogates and code points beyond U+10FFFF are none.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    if (!continues(1) || !continues(2)) return 0;
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0)) return 0;
    return 3;
  }
  if (first >= 0xF0 && first < 0xF5) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90)) return 0;
    return 4;
  }
  return 0;
}

constexpr std::array<bool, 256> PlainBytes() {
  std::array<bool, 256> plain{};
  for (size_t c = ' '; c <= '~'; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}

constexpr std::array<bool, 256> kIsPlain = PlainBytes();

bool IsPlain(char c) { return kIsPlain[static_cast<unsigned char>(c)]; }

void AppendEscaped(absl::string_view text, std::string* to) {
  while (true) {
    // Nearly all text is nothing else.
    const auto* const plain_end = std::find_if_not(text.begin(), text.end(), IsPlain);
    const size_t plain = static_cast<size_t>(plain_end - text.begin());
    to->append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    const unsigned char c = static_cast<unsigned char>(text[0]);
    if (c == '"' || c == '\\') {
      to->push_back('\\');
      to->push_back(static_cast<char>(c));
    } else if (c == '\n') {
      to->append("\\n");
    } else if (c < 0x20 || c == 0x7F) {
      to->append("\\u00");
      to->push_back("0123456789abcdef"[c >> 4]);
      to->push_back("0123456789abcdef"[c & 15]);
    } else {
      const size_t length = Utf8Length(text);
      if (length == 0) {
        to->append("\xEF\xBF\xBD");
      } else {
        to->append(text.data(), length);
        text.remove_prefix(length - 1);
      }
    }
    text.remove_prefix(1);
  }
}

}  // namespace

void JsonLine::AddKey(absl::string_view key) {
  if (text_.size() > 1) {
    text_.push_back(',');
  } else {
    text_.reserve(kUsualBytes);
  }
  text_.push_back('"');
  AppendEscaped(key, &text_);
  text_.append("\":");
}

JsonLine& JsonLine::Add(absl::string_view key, absl::string_view text) {
  AddKey(key);
  text_.push_back('"');
  AppendEscaped(text, &text_);
  text_.push_back('"');
  return *this;
}

JsonLine& JsonLine::Add(absl::string_view key, int64_t number) {
  AddKey(key);
  absl::StrAppend(&text_, number);
  return *this;
}

std::string JsonLine::Take() && {
  text_.push_back('}');
  return std::move(text_);
}

}  // namespace tensord::server
