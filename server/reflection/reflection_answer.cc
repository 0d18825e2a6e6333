#include "server/reflection/reflection_answer.h"

#include <grpcpp/support/status_code_enum.h>

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.pb.h"

namespace tensord::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using reflection::ServerReflectionRequest;
using reflection::ServerReflectionResponse;

void Refuse(grpc::StatusCode code, const std::string& message, ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(message);
}

// `name`: the requested name, if there is no such file.
void AddFiles(const FileDescriptor* file, const std::string& name, ServerReflectionResponse* response) {
  if (file == nullptr) return Refuse(grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no ", name), response);
  std::vector<const FileDescriptor*> files = {file};
  absl::flat_hash_set<const FileDescriptor*> seen = {file};
  for (size_t i = 0; i < files.size(); ++i) {
    google::protobuf::FileDescriptorProto proto;
    files[i]->CopyTo(&proto);
    response->mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
    for (int k = 0; k < files[i]->dependency_count(); ++k) {
      const FileDescriptor* const imported = files[i]->dependency(k);
      if (seen.insert(imported).second) files.push_back(imported);
    }
  }
}

void AddExtensionNumbers(const std::string& name, const DescriptorPool& pool, ServerReflectionResponse* response) {
  const Descriptor* const type = pool.FindMessageTypeByName(name);
  if (type == nullptr) {
    return Refuse(grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no message ", name), response);
  }
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(type, &extensions);
  auto* const numbers = response->mutable_all_extension_numbers_response();
  numbers->set_base_type_name(name);
  for (const FieldDescriptor* extension : extensions) numbers->add_extension_number(extension->number());
}

}  // namespace

ServerReflectionResponse AnswerReflection(const ServerReflectionRequest& request,
                                          absl::Span<const std::string> services, const DescriptorPool& pool) {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename: {
      const std::string& name = request.file_by_filename();
      AddFiles(pool.FindFileByName(name), absl::StrCat("file ", name), &response);
      break;
    }
    case ServerReflectionRequest::kFileContainingSymbol: {
      const std::string& name = request.file_containing_symbol();
      AddFiles(pool.FindFileContainingSymbol(name), absl::StrCat("symbol ", name), &response);
      break;
    }
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& wanted = request.file_containing_extension();
      const Descriptor* const type = pool.FindMessageTypeByName(wanted.containing_type());
      const FieldDescriptor* const extension =
          type == nullptr ? nullptr : pool.FindExtensionByNumber(type, wanted.extension_number());
      AddFiles(extension == nullptr ? nullptr : extension->file(),
               absl::StrCat("extension ", wanted.extension_number(), " of a message ", wanted.containing_type()),
               &response);
      break;
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      AddExtensionNumbers(request.all_extension_numbers_of_type(), pool, &response);
      break;
    case ServerReflectionRequest::kListServices: {
      response.mutable_list_services_response();  // also where there are none
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    }
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      Refuse(grpc::StatusCode::INVALID_ARGUMENT, "the request asks for nothing that this server knows", &response);
      break;
  }
  return response;
}

}  // namespace tensord::server
