#ifndef TENSORD_ENGINE_BASE_STREAMING_COPY_H_
#define TENSORD_ENGINE_BASE_STREAMING_COPY_H_

#include "absl/strings/string_view.h"

namespace tensord {

// Copies past the caches if the processor can: for parts of data larger than the caches, so that memory is not fetched
// before it is written, and does not displace the data in use. The bytes must not overlap.
void StreamingCopy(absl::string_view from, char* to);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_STREAMING_COPY_H_
