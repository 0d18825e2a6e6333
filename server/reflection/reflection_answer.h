#ifndef TENSORD_SERVER_REFLECTION_REFLECTION_ANSWER_H_
#define TENSORD_SERVER_REFLECTION_REFLECTION_ANSWER_H_

#include <string>

#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "server/reflection/reflection.pb.h"

namespace tensord::server {

// Answers a request of reflection from the files of the pool: a file comes with all that it imports, the requested file
// first. A missing name is an error in the answer, NOT_FOUND.
reflection::ServerReflectionResponse AnswerReflection(const reflection::ServerReflectionRequest& request,
                                                      absl::Span<const std::string> services,
                                                      const google::protobuf::DescriptorPool& pool);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_REFLECTION_REFLECTION_ANSWER_H_
