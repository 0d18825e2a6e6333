#ifndef TENSORD_ENGINE_BASE_UTF8_H_
#define TENSORD_ENGINE_BASE_UTF8_H_

#include "absl/strings/string_view.h"

namespace tensord {

// Whether the bytes are well-formed UTF-8: no overlong form, no surrogate, nothing past U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_UTF8_H_
