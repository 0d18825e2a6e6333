#ifndef TENSORD_ENGINE_BASE_UTF8_H_
#define TENSORD_ENGINE_BASE_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord {

// Tells whether the bytes are well-formed UTF-8: no overlong form, no surrogate, nothing past U+10FFFF.
bool IsUtf8(absl::string_view text);

// Returns the text; if it is not UTF-8, with '?' in place of every byte that is not ASCII.
std::string ToUtf8(absl::string_view text);

// Returns as much of the text as fits into so many bytes without cutting a character, as ToUtf8 does.
std::string Utf8Prefix(absl::string_view text, size_t max_bytes);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_UTF8_H_
