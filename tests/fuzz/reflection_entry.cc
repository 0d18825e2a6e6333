#include <set>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/stubs/logging.h"
#include "server/reflection/reflection_answer.h"
#include "tensord/v1/compute.pb.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/require.h"

namespace tensord {

void FuzzReflection(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;  // about text that is not UTF-8
  reflection::ServerReflectionRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const google::protobuf::DescriptorPool* const pool = v1::ExecuteRequest::descriptor()->file()->pool();
  const std::vector<std::string> services = {"tensord.v1.Compute"};
  const reflection::ServerReflectionResponse response = server::AnswerReflection(request, services, *pool);
  Require(response.original_request().SerializeAsString() == request.SerializeAsString(), "the request comes back");
  Require(response.message_response_case() != reflection::ServerReflectionResponse::MESSAGE_RESPONSE_NOT_SET,
          "each request has an answer");
  std::set<std::string> names, imports;
  for (const std::string& file : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto proto;
    Require(proto.ParseFromString(file), "a file can be read");
    Require(names.insert(proto.name()).second, "each file comes once");
    imports.insert(proto.dependency().begin(), proto.dependency().end());
  }
  for (const std::string& name : imports) Require(names.count(name) == 1, "a file comes with what it imports");
  if (request.has_file_by_filename() && response.has_file_descriptor_response()) {
    Require(names.count(request.file_by_filename()) == 1, "the file is there that was asked for");
  }
}

}  // namespace tensord
