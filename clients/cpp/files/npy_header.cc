#include "clients/cpp/files/npy_header.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tensord::client {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
constexpr size_t kShownBytes = 40;

absl::Status Malformed(absl::string_view what, absl::string_view at) {
  return absl::InvalidArgumentError(absl::StrCat("the .npy header is malformed: ", what, " at \"",
                                                 absl::CHexEscape(at.substr(0, kShownBytes)), "\""));
}

// Reads the literals of the header's dictionary from the front of a text.
class DictionaryReader {
 public:
  explicit DictionaryReader(absl::string_view text) : text_(text) {}

  // Skips blanks, and takes the token where it stands next.
  bool Take(absl::string_view token) {
    while (!text_.empty() && absl::ascii_isspace(static_cast<unsigned char>(text_.front()))) text_.remove_prefix(1);
    if (!absl::StartsWith(text_, token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  std::optional<std::string> TakeString() {
    const absl::string_view quote = Take("'") ? "'" : Take("\"") ? "\"" : "";
    if (quote.empty()) return std::nullopt;
    const size_t end = text_.find(quote);
    if (end == absl::string_view::npos) return std::nullopt;
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return value;
  }

  std::optional<int64_t> TakeInteger() {
    Take("");
    const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
    const size_t length = static_cast<size_t>(std::find_if_not(text_.begin(), text_.end(), is_digit) - text_.begin());
    int64_t value;
    if (length == 0 || !absl::SimpleAtoi(text_.substr(0, length), &value)) return std::nullopt;
    text_.remove_prefix(length);
    Take("L");  // as Python 2 wrote it
    return value;
  }

  // "()", "(2,)", "(2, 3)", with or without a comma at the end.
  std::optional<Shape> TakeShape() {
    if (!Take("(")) return std::nullopt;
    Shape shape;
    bool needs_comma = false;
    while (!Take(")")) {
      if (needs_comma && !Take(",")) return std::nullopt;
      if (needs_comma && Take(")")) return shape;
      std::optional<int64_t> dim = TakeInteger();
      if (!dim.has_value()) return std::nullopt;
      shape.push_back(*dim);
      needs_comma = true;
    }
    return shape;
  }

  absl::string_view rest() const { return text_; }

 private:
  absl::string_view text_;
};

absl::Status ParseEntry(DictionaryReader& reader, NpyHeader* header, std::vector<std::string>* seen) {
  const absl::string_view start = reader.rest();
  const std::optional<std::string> key = reader.TakeString();
  if (!key.has_value() || !reader.Take(":")) return Malformed("expected a key", start);
  if (std::find(seen->begin(), seen->end(), *key) != seen->end()) return Malformed("key is given twice", start);
  seen->push_back(*key);
  const absl::string_view value = reader.rest();
  if (*key == "descr") {
    std::optional<std::string> descriptor = reader.TakeString();
    if (!descriptor.has_value() && absl::StartsWith(absl::StripLeadingAsciiWhitespace(value), "[")) {
      return absl::InvalidArgumentError("the .npy file has records, which are no elements of a tensor; save one field");
    }
    if (!descriptor.has_value()) return Malformed("expected a simple element type", value);
    header->descriptor = *std::move(descriptor);
  } else if (*key == "fortran_order") {
    header->is_fortran_order = reader.Take("True");
    if (!header->is_fortran_order && !reader.Take("False")) return Malformed("expected True or False", value);
  } else if (*key == "shape") {
    std::optional<Shape> shape = reader.TakeShape();
    if (!shape.has_value()) return Malformed("expected a tuple of sizes that fit into 64 bits", value);
    header->shape = *std::move(shape);
  } else {
    return Malformed("unknown key", start);
  }
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> ParseDictionary(absl::string_view text) {
  DictionaryReader reader(text);
  NpyHeader header;
  std::vector<std::string> seen;
  if (!reader.Take("{")) return Malformed("expected a dictionary", text);
  while (!reader.Take("}")) {
    if (!seen.empty() && !reader.Take(",")) return Malformed("expected a comma", reader.rest());
    if (!seen.empty() && reader.Take("}")) break;
    const absl::Status status = ParseEntry(reader, &header, &seen);
    if (!status.ok()) return status;
  }
  reader.Take("");
  if (!reader.rest().empty()) return Malformed("bytes after the dictionary", reader.rest());
  if (seen.size() != 3) return Malformed("needs descr, fortran_order and shape", text);
  return header;
}

}  // namespace

absl::StatusOr<size_t> NpyHeaderBytes(absl::string_view prefix) {
  if (!absl::StartsWith(prefix, absl::string_view(kMagic, kMagicBytes)) || prefix.size() < kMagicBytes + 2) {
    return absl::InvalidArgumentError("not a .npy file: the magic number is missing");
  }
  const int version = static_cast<unsigned char>(prefix[kMagicBytes]);
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(absl::StrCat("unknown .npy version: ", version));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t prefix_bytes = kMagicBytes + 2 + length_bytes;
  if (prefix.size() < prefix_bytes) return absl::InvalidArgumentError("the .npy header is cut off");
  size_t dictionary_bytes = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    dictionary_bytes |= size_t{static_cast<unsigned char>(prefix[kMagicBytes + 2 + i])} << (8 * i);
  }
  if (dictionary_bytes > kMostNpyHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the .npy header has ", dictionary_bytes, " bytes, more than ", kMostNpyHeaderBytes));
  }
  return prefix_bytes + dictionary_bytes;
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view file) {
  const absl::StatusOr<size_t> size = NpyHeaderBytes(file.substr(0, kNpyPrefixBytes));
  if (!size.ok()) return size.status();
  if (*size > file.size()) return absl::InvalidArgumentError("the .npy header is cut off");
  const size_t prefix_bytes = kMagicBytes + 2 + (file[kMagicBytes] == 1 ? 2 : 4);
  absl::StatusOr<NpyHeader> header = ParseDictionary(file.substr(prefix_bytes, *size - prefix_bytes));
  if (header.ok()) header->size_bytes = *size;
  return header;
}

}  // namespace tensord::client
