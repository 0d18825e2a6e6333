#ifndef TENSORD_PROTO_COMMAND_LINE_NEAREST_NAME_H_
#define TENSORD_PROTO_COMMAND_LINE_NEAREST_NAME_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord::wire {

// Returns the name that a word was most likely meant to be; empty if none is near. A name is near if at most a third of
// the word's letters, one of a short word, is missing, added, replaced or exchanged with its neighbour (the distance of
// optimal string alignment), or if it alone begins with the word. Of equally near names the first one is returned.
std::string NearestName(absl::string_view word, absl::Span<const std::string> names);

// Returns the end of a message: "; did you mean --target?" with "--" as the prefix; empty if no name is near.
std::string DidYouMean(absl::string_view word, absl::Span<const std::string> names, absl::string_view prefix = "");

}  // namespace tensord::wire

#endif  // TENSORD_PROTO_COMMAND_LINE_NEAREST_NAME_H_
