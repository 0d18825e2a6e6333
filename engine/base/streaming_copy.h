#ifndef TENSORD_ENGINE_BASE_STREAMING_COPY_H_
#define TENSORD_ENGINE_BASE_STREAMING_COPY_H_

#include "absl/strings/string_view.h"

namespace tensord {

// Copies past the caches where the processor can: for parts of what is larger than they are, so that memory is neither
// fetched before it is written nor takes the place of what is in use. The bytes must not overlap.
void StreamingCopy(absl::string_view from, char* to);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_STREAMING_COPY_H_
