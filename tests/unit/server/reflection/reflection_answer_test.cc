#include "server/reflection/reflection_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "google/protobuf/descriptor.pb.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

using reflection::ServerReflectionRequest;
using reflection::ServerReflectionResponse;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ServerReflectionResponse Answer(const ServerReflectionRequest& request) {
  google::protobuf::LinkMessageReflection<v1::ExecuteRequest>();
  return AnswerReflection(request, {"tensord.v1.Compute", "other"},
                          *google::protobuf::DescriptorPool::generated_pool());
}

std::vector<std::string> FilesOf(const ServerReflectionResponse& response) {
  std::vector<std::string> names;
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(file.ParseFromString(bytes));
    names.push_back(file.name());
  }
  return names;
}

TEST(ReflectionAnswerTest, ListsServices) {
  ServerReflectionRequest request;
  request.set_host("here");
  request.set_list_services("");
  const ServerReflectionResponse response = Answer(request);
  EXPECT_EQ(response.valid_host(), "here");
  EXPECT_EQ(response.original_request().host(), "here");
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) names.push_back(service.name());
  EXPECT_THAT(names, ElementsAre("tensord.v1.Compute", "other"));
}

TEST(ReflectionAnswerTest, GivesAFileWithAllThatItImports) {
  ServerReflectionRequest by_symbol, by_name;
  by_symbol.set_file_containing_symbol("tensord.v1.Compute.Execute");
  const std::vector<std::string> files = FilesOf(Answer(by_symbol));
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0], "tensord/v1/compute.proto");
  EXPECT_THAT(files, Contains("tensord/v1/graph.proto"));
  EXPECT_THAT(files, Contains("google/protobuf/any.proto"));
  by_name.set_file_by_filename("tensord/v1/compute.proto");
  EXPECT_EQ(FilesOf(Answer(by_name)), files);
}

// An extension of a message, in a pool of its own.
TEST(ReflectionAnswerTest, FindsExtensions) {
  google::protobuf::FileDescriptorProto file;
  file.set_name("extended.proto");
  file.set_package("test");
  auto* const message = file.add_message_type();
  message->set_name("Extended");
  auto* const range = message->add_extension_range();
  range->set_start(100);
  range->set_end(200);
  auto* const extension = file.add_extension();
  extension->set_name("extra");
  extension->set_number(123);
  extension->set_extendee(".test.Extended");
  extension->set_type(google::protobuf::FieldDescriptorProto::TYPE_INT32);
  extension->set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
  google::protobuf::DescriptorPool pool;
  ASSERT_NE(pool.BuildFile(file), nullptr);

  ServerReflectionRequest numbers, found, unknown;
  numbers.set_all_extension_numbers_of_type("test.Extended");
  const auto all = AnswerReflection(numbers, {}, pool).all_extension_numbers_response();
  EXPECT_EQ(all.base_type_name(), "test.Extended");
  EXPECT_THAT(all.extension_number(), ElementsAre(123));
  found.mutable_file_containing_extension()->set_containing_type("test.Extended");
  found.mutable_file_containing_extension()->set_extension_number(123);
  EXPECT_THAT(FilesOf(AnswerReflection(found, {}, pool)), ElementsAre("extended.proto"));
  unknown.mutable_file_containing_extension()->set_containing_type("test.Extended");
  unknown.mutable_file_containing_extension()->set_extension_number(124);
  EXPECT_EQ(AnswerReflection(unknown, {}, pool).error_response().error_code(), 5);
}

TEST(ReflectionAnswerTest, SaysWhatIsNotThere) {
  ServerReflectionRequest file, symbol, type;
  file.set_file_by_filename("nowhere.proto");
  EXPECT_EQ(Answer(file).error_response().error_code(), 5);
  EXPECT_THAT(Answer(file).error_response().error_message(), HasSubstr("nowhere.proto"));
  symbol.set_file_containing_symbol("no.Symbol");
  EXPECT_EQ(Answer(symbol).error_response().error_code(), 5);
  type.set_all_extension_numbers_of_type("no.Type");
  EXPECT_EQ(Answer(type).error_response().error_code(), 5);
  EXPECT_EQ(Answer(ServerReflectionRequest()).error_response().error_code(), 3);
}

}  // namespace
}  // namespace tensord::server
