// An upload's treatment of lost answers, and of an end in the middle. The server is the test's.
#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/checksum/crc32c.h"
#include "tensord/client.h"
#include "tensord/error_detail.h"
#include "tensord/messages.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::client {
namespace {

using Reader = grpc::ServerReader<v1::PutTensorRequest>;

grpc::Status Refused(const std::string& reason) {
  v1::ErrorDetail detail;
  detail.set_reason(reason);
  // FakeServer writes lengths of two bytes.
  detail.set_node(std::string(130, 'n'));
  return FakeServer::Refusal(grpc::StatusCode::FAILED_PRECONDITION, "refused", detail);
}

HostTensor Floats(std::vector<float> values, std::vector<int64_t> shape) {
  return *HostTensor::FromVector(values, std::move(shape));
}

TEST(ForgetfulServerTest, EndsAnUploadThatGetsNoFurther) {
  constexpr int kMany = 8;  // more than the attempts of an upload that gets no further
  int asked = 0;
  FakeServer server;
  server.put_tensor = [&asked](grpc::ServerContext*, Reader* reader, v1::PutTensorResponse* response) {
    v1::PutTensorRequest request;
    int chunks = -1;
    while (reader->Read(&request)) ++chunks;
    if (chunks > 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken");
    if (++asked == kMany) return Refused("OUT_OF_MEMORY");
    response->set_byte_count(asked % 2 == 0 ? 0 : 4);  // it has them, and loses them again
    return grpc::Status::OK;
  };
  const auto client = Client::Connect({.target = server.target()});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status put = (*client)->PutTensor("s", "t", Floats({1, 2}, {2}), {.deadline = absl::Milliseconds(1500)});
  EXPECT_EQ(put.code(), absl::StatusCode::kUnavailable) << put;
  EXPECT_LT(asked, kMany);
}

// A server that has one tensor: the answer to its upload is lost, and it refuses the next.
class LostAnswerTest : public ::testing::Test {
 protected:
  LostAnswerTest() {
    server_.put_tensor = [this](grpc::ServerContext*, Reader* reader, v1::PutTensorResponse*) {
      v1::PutTensorRequest request;
      int chunks = -1;
      while (reader->Read(&request)) ++chunks;
      // UNAVAILABLE without a reason is what gRPC says where a connection breaks.
      return chunks > 0 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken") : Refused("HANDLE_DUPLICATE");
    };
    server_.get_tensor = [this](const v1::GetTensorRequest& request,
                                grpc::ServerWriter<v1::GetTensorResponse>* writer) {
      EXPECT_EQ(request.handle(), "t");
      ++downloads_;
      v1::GetTensorResponse message;
      message.mutable_header()->set_dtype(dtype_);
      message.mutable_header()->mutable_shape()->Assign(there_.shape().begin(), there_.shape().end());
      message.mutable_header()->set_order(request.order());
      writer->Write(message);
      v1::GetTensorResponse::Chunk& chunk = *message.mutable_chunk();
      chunk.set_data(std::string(there_.bytes(), there_.size_bytes()));
      chunk.set_crc32c(Crc32c(chunk.data()));
      writer->Write(message);
      return grpc::Status::OK;
    };
  }

  absl::Status Put(const HostTensor& tensor) {
    const auto client = Client::Connect({.target = server_.target(), .deadline = absl::Minutes(1)});
    return client.ok() ? (*client)->PutTensor("s", "t", tensor) : client.status();
  }
  void ExpectRefusal(const HostTensor& tensor) {
    const absl::Status put = Put(tensor);
    ASSERT_TRUE(GetErrorDetail(put).has_value()) << put;
    EXPECT_EQ(GetErrorDetail(put)->reason, "HANDLE_DUPLICATE");
    EXPECT_EQ(downloads_, 1);
  }

  HostTensor there_ = Floats({1, 2, 3, 4}, {2, 2});
  v1::DType dtype_ = v1::DTYPE_F32;
  int downloads_ = 0;
  FakeServer server_;
};

// Else a server could go on for ever.
TEST_F(LostAnswerTest, ADownloadRefusesChunksThatBringNothing) {
  server_.get_tensor = [](const v1::GetTensorRequest& request, grpc::ServerWriter<v1::GetTensorResponse>* writer) {
    v1::GetTensorResponse header, chunk;
    header.mutable_header()->set_dtype(v1::DTYPE_F32);
    header.mutable_header()->add_shape(1);
    header.mutable_header()->set_order(request.order());
    writer->Write(header);
    chunk.mutable_chunk()->set_crc32c(Crc32c(""));
    writer->Write(chunk);
    chunk.mutable_chunk()->set_data(std::string(4, 'x'));
    chunk.mutable_chunk()->set_crc32c(Crc32c(chunk.chunk().data()));
    writer->Write(chunk);
    return grpc::Status::OK;
  };
  const auto client = Client::Connect({.target = server_.target(), .deadline = absl::Minutes(1)});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(absl::IsInternal((*client)->GetTensor("s", "t").status()));
}

TEST_F(LostAnswerTest, TheSameTensorThereIsSuccess) {
  const absl::Status put = Put(there_);
  EXPECT_TRUE(put.ok()) << put;
  EXPECT_EQ(downloads_, 1);
}

TEST_F(LostAnswerTest, OtherBytesThereAreTheRefusal) { ExpectRefusal(Floats({1, 2, 3, 5}, {2, 2})); }

TEST_F(LostAnswerTest, AnotherShapeThereIsTheRefusal) { ExpectRefusal(Floats({1, 2, 3, 4}, {4})); }

TEST_F(LostAnswerTest, AnotherTypeThereIsTheRefusal) {
  dtype_ = v1::DTYPE_I32;
  ExpectRefusal(there_);
}

TEST_F(LostAnswerTest, ATensorThatWasThereBeforeIsTheRefusalWithoutALook) {
  server_.put_tensor = [](grpc::ServerContext*, Reader*, v1::PutTensorResponse*) {
    return Refused("HANDLE_DUPLICATE");
  };
  const absl::Status put = Put(there_);
  ASSERT_TRUE(GetErrorDetail(put).has_value()) << put;
  EXPECT_EQ(GetErrorDetail(put)->reason, "HANDLE_DUPLICATE");
  EXPECT_EQ(downloads_, 0);
}

// gRPC shows an answer with dropped messages like this.
TEST(LostMessagesTest, ADownloadGoesOnAfterACallThatEndedWellAndEarly) {
  FakeServer server;
  const std::string bytes(3000, 'b');
  int calls = 0;
  server.get_tensor = [&](const v1::GetTensorRequest& request, grpc::ServerWriter<v1::GetTensorResponse>* writer) {
    v1::GetTensorResponse message;
    message.mutable_header()->set_dtype(v1::DTYPE_F32);
    message.mutable_header()->add_shape(750);
    // No message, the header, a chunk, the rest.
    if (++calls > 1) writer->Write(message);
    for (int64_t at = request.offset(); calls > 2 && at < (calls == 3 ? 1000 : 3000); at += 1000) {
      message.mutable_chunk()->set_offset(at);
      message.mutable_chunk()->set_data(bytes.substr(static_cast<size_t>(at), 1000));
      message.mutable_chunk()->set_crc32c(Crc32c(message.chunk().data()));
      writer->Write(message);
    }
    return grpc::Status::OK;
  };
  const auto client = Client::Connect({.target = server.target(), .deadline = absl::Minutes(1)});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto got = (*client)->GetTensor("s", "t");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(std::string(got->bytes(), got->size_bytes()), bytes);
  EXPECT_EQ(calls, 4);
}

TEST(UploadIdTest, IsThatOfAllItsCallsAndOfNoOther) {
  FakeServer server;
  std::vector<uint64_t> ids;
  server.put_tensor = [&ids](grpc::ServerContext*, Reader* reader, v1::PutTensorResponse* response) {
    v1::PutTensorRequest request;
    reader->Read(&request);
    ids.push_back(request.header().upload_id());
    while (reader->Read(&request)) response->set_byte_count(8);
    return ids.size() < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken") : grpc::Status::OK;
  };
  const auto client = Client::Connect({.target = server.target(), .deadline = absl::Minutes(1)});
  ASSERT_TRUE(client.ok()) << client.status();
  for (int upload = 0; upload < 2; ++upload) {
    const absl::Status put = (*client)->PutTensor("s", "t", Floats({1, 2}, {2}));
    EXPECT_TRUE(put.ok()) << put;
  }
  // The third asks what there is, and hears: nothing.
  ASSERT_EQ(ids.size(), 5u);
  EXPECT_NE(ids[0], 0u);
  EXPECT_EQ(std::set<uint64_t>(ids.begin(), ids.begin() + 4).size(), 1u);
  EXPECT_NE(ids[4], ids[0]);
}

TEST(ChangedDownloadTest, IsAborted) {
  FakeServer server;
  uint64_t version = 0;
  server.get_tensor = [&version](const v1::GetTensorRequest& request,
                                 grpc::ServerWriter<v1::GetTensorResponse>* writer) {
    v1::GetTensorResponse message;
    message.mutable_header()->set_dtype(v1::DTYPE_F32);
    message.mutable_header()->add_shape(2);
    message.mutable_header()->set_order(request.order());
    message.mutable_header()->set_version(++version);
    writer->Write(message);
    v1::GetTensorResponse::Chunk& chunk = *message.mutable_chunk();
    chunk.set_offset(request.offset());
    chunk.set_data("abcd");
    chunk.set_crc32c(Crc32c("abcd"));
    writer->Write(message);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken");
  };
  const auto client = Client::Connect({.target = server.target(), .deadline = absl::Minutes(1)});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<HostTensor> got = (*client)->GetTensor("s", "t");
  EXPECT_TRUE(absl::IsAborted(got.status())) << got.status();
}

TEST(GivenUpUploadTest, IsTakenAwayOnceTheServerHasNoticedThatItIsOver) {
  FakeServer server;
  std::mutex mutex;
  std::vector<std::string> calls;
  std::promise<void> is_away;
  server.put_tensor = [&](grpc::ServerContext* context, Reader* reader, v1::PutTensorResponse*) {
    v1::PutTensorRequest request;
    reader->Read(&request);
    const bool is_resumable = request.header().resumable();
    if (is_resumable) {
      while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));  // until the client's deadline
    }
    const std::lock_guard<std::mutex> lock(mutex);
    calls.push_back((is_resumable ? "resumable " : "not ") + request.header().handle());
    if (is_resumable) return grpc::Status::CANCELLED;
    int chunks = 0;
    while (reader->Read(&request)) ++chunks;
    EXPECT_EQ(chunks, 0);
    const bool knows = std::count(calls.begin(), calls.end(), "not t") > 1;
    if (knows) is_away.set_value();
    return Refused(knows ? "DATA_LENGTH_MISMATCH" : "HANDLE_INCOMPLETE");
  };
  const auto client = Client::Connect({.target = server.target(), .deadline = absl::Milliseconds(100)});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status put = (*client)->PutTensor("s", "t", Floats({1, 2}, {2}));
  EXPECT_TRUE(absl::IsDeadlineExceeded(put)) << put;
  EXPECT_EQ(is_away.get_future().wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

}  // namespace
}  // namespace tensord::client
