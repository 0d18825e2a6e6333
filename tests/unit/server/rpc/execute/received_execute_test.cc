#include "server/rpc/execute/received_execute.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/machine/thread_pool.h"
#include "gtest/gtest.h"
#include "server/rpc/wire/slice_reader.h"
#include "server/rpc/wire/wire_bytes.h"
#include "tests/testlib/peers/bytes_field.h"
#include "tests/testlib/peers/received_execute_oracle.h"

namespace tensord::server {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

const auto kSerially = [](int64_t tasks, absl::FunctionRef<void(int64_t)> fn) {
  for (int64_t i = 0; i < tasks; ++i) fn(i);
};

std::string TensorBytes(absl::string_view data) {
  v1::Tensor tensor;
  tensor.set_dtype(v1::DTYPE_BOOL);
  tensor.add_shape(static_cast<int64_t>(data.size()));
  tensor.set_data(std::string(data));
  return tensor.SerializeAsString();
}

// An argument field of a request, from the bytes of its tensor.
std::string ArgumentOf(absl::string_view tensor) { return BytesField(5, BytesField(1, tensor)); }

void ExpectSame(absl::string_view bytes, absl::string_view what) {
  std::mt19937_64 random(bytes.size());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(DifferenceFromProtobuf(bytes, &random), "") << what;
}

TEST(ReceivedExecuteTest, LargePayloadsAreGatheredAndSmallOnesAreNot) {
  v1::ExecuteRequest request;
  request.set_request_id(7);
  request.set_fingerprint("f");
  for (const size_t size : {size_t{5000}, size_t{4095}, size_t{0}, size_t{100'000}}) {
    ASSERT_TRUE(request.add_arguments()->mutable_tensor()->ParseFromString(TensorBytes(std::string(size, 'x'))));
  }
  request.add_arguments()->set_handle("h");
  std::mt19937_64 random(1);
  grpc::ByteBuffer buffer = InSlices(request.SerializeAsString(), &random);
  const auto pool = HostBufferPool::Create(kNoLimit, 1 << 20);
  auto received = ReceiveExecute(&buffer, {});
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(buffer.Length(), 0u) << "the slices are taken";
  EXPECT_EQ(pool->stats().allocated, 0) << "nothing is copied before it is wanted";
  ASSERT_TRUE(received->Gather(pool.get(), kSerially).ok());
  for (const int i : {0, 3}) {
    const Buffer* const payload = received->payload(i);
    ASSERT_NE(payload, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(payload->address()) % 64, 0u);
    EXPECT_TRUE(received->message.arguments(i).tensor().data().empty());
  }
  for (const int i : {1, 2, 4}) EXPECT_EQ(received->payload(i), nullptr);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(received->DataOf(i) == request.arguments(i).tensor().data()) << i;
  EXPECT_EQ(received->message.request_id(), 7u);
  EXPECT_EQ(pool->stats().allocated, 2);
  const Buffer* const first = received->payload(0);
  ASSERT_TRUE(received->Gather(pool.get(), kSerially).ok());
  EXPECT_EQ(received->payload(0), first) << "once";
}

TEST(ReceivedExecuteTest, SeveralThreadsGatherWhatIsLarge) {
  std::string data(size_t{20} << 20, '\0');
  std::mt19937_64 random(1);
  for (size_t i = 0; i + 8 <= data.size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(&data[i], &word, sizeof(word));
  }
  v1::ExecuteRequest request;
  for (const size_t size : {data.size(), size_t{100'000}, data.size() / 2 + 1}) {
    ASSERT_TRUE(request.add_arguments()->mutable_tensor()->ParseFromString(TensorBytes(data.substr(0, size))));
  }
  grpc::ByteBuffer buffer = InSlices(request.SerializeAsString(), &random);
  const auto pool = HostBufferPool::Create(kNoLimit, 1 << 20);
  cpu::ThreadPool threads(4);
  int spread = 0;
  auto received = ReceiveExecute(&buffer, {});
  ASSERT_TRUE(received.ok()) << received.status();
  const absl::Status gathered = received->Gather(pool.get(), [&](int64_t tasks, absl::FunctionRef<void(int64_t)> fn) {
    ++spread;
    threads.ParallelFor(tasks, fn);
  });
  ASSERT_TRUE(gathered.ok()) << gathered;
  EXPECT_EQ(spread, 2) << "the small one is copied by the caller";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(received->DataOf(i) == request.arguments(i).tensor().data()) << i;
}

TEST(ReceivedExecuteTest, ALimitHoldsForEachTensor) {
  std::mt19937_64 random(1);
  const std::string bytes =
      ArgumentOf(TensorBytes(std::string(5000, 'x'))) + ArgumentOf(TensorBytes(std::string(9000, 'x')));
  grpc::ByteBuffer buffer = InSlices(bytes, &random);
  codec::GraphLimits limits;
  limits.tensor_bytes = 8999;
  const auto refused = ReceiveExecute(&buffer, limits);
  const auto detail = DetailOf(refused.status());
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "LIMIT_EXCEEDED");
  EXPECT_EQ(detail->limit, "tensor_bytes");
  EXPECT_EQ(detail->limit_value, 8999);
  EXPECT_EQ(detail->actual_value, 9000);
}

TEST(ReceivedExecuteTest, UnusualMessagesMeanWhatProtobufSays) {
  const std::string data(6000, 'd'), other(7000, 'e');
  const std::string tensor = TensorBytes(data), twin = TensorBytes(other);
  ExpectSame("", "nothing");
  ExpectSame(ArgumentOf(tensor), "one tensor");
  ExpectSame(ArgumentOf(BytesField(15, data) + BytesField(2, "\x03")), "data first, then a packed shape");
  ExpectSame(ArgumentOf(BytesField(15, data) + "\x10\x05\x10\x06\x18\x02"),
             "a shape that is not packed, behind the data");
  ExpectSame(ArgumentOf(tensor + BytesField(15, other)), "data twice");
  ExpectSame(ArgumentOf(BytesField(15, data) + BytesField(15, "")), "data, and then none");
  ExpectSame(BytesField(5, BytesField(1, tensor) + BytesField(1, twin)), "two tensors in one argument are merged");
  ExpectSame(BytesField(5, BytesField(1, tensor) + BytesField(2, "h")), "the last of a oneof counts");
  ExpectSame(BytesField(5, BytesField(2, "h") + BytesField(1, tensor)), "likewise");
  ExpectSame(BytesField(5, BytesField(1, tensor) + "\x20\x01"), "an unknown field of an argument");
  ExpectSame(ArgumentOf(tensor + "\x20\x01"), "an unknown field of a tensor");
  ExpectSame(ArgumentOf(tensor) + "\x50\x01", "an unknown field of the request");
  ExpectSame(ArgumentOf(tensor) + BytesField(1, "x"), "a field of another wire type");
  ExpectSame(ArgumentOf(BytesField(1, "x") + tensor), "likewise, in a tensor");
  ExpectSame(ArgumentOf(tensor) + "\x53\x54", "a group");
  ExpectSame(ArgumentOf(tensor) + std::string(1, '\0'), "the tag 0");
  ExpectSame(ArgumentOf(tensor) + BytesField(2, "\xFF"), "a string that is no UTF-8");
  ExpectSame(BytesField(2, "\xFF") + ArgumentOf(tensor), "likewise, before");
  ExpectSame(ArgumentOf(tensor + BytesField(2, "\x80")), "a packed shape that breaks off");
  ExpectSame(BytesField(3, BytesField(1, "graph")) + ArgumentOf(tensor) + BytesField(3, BytesField(1, "h")),
             "graphs are merged");
  ExpectSame(BytesField(2, "f") + ArgumentOf(tensor) + BytesField(3, "") + ArgumentOf(twin), "a program twice");
  ExpectSame(ArgumentOf(tensor).substr(0, 5000), "truncated in the data");
  ExpectSame(ArgumentOf(tensor) + "\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", "a varint with bits beyond 64");
  ExpectSame(ArgumentOf(tensor) + "\x08" + std::string(10, '\xFF') + "\x01", "a varint of eleven bytes");
  // A length of more bytes than it needs, around and inside of an argument.
  std::string inner = BytesField(1, tensor), padded = "\x2A";
  AppendVarint(inner.size(), &padded);
  padded.back() = static_cast<char>(padded.back() | 0x80);
  padded.push_back('\0');
  ExpectSame(padded + inner, "a length with a byte too many");
  ExpectSame(std::string("\xAA\x00", 2) + inner, "a tag with a byte too many");
}

std::string RandomRequest(std::mt19937_64* random) {
  const auto below = [random](int n) { return std::uniform_int_distribution<int>(0, n - 1)(*random); };
  v1::ExecuteRequest request;
  if (below(2)) request.set_request_id((*random)());
  if (below(2)) request.set_fingerprint(std::string(static_cast<size_t>(below(70)), 'f'));
  if (below(4) == 0) request.mutable_graph()->set_name(std::string(static_cast<size_t>(below(6000)), 'g'));
  if (below(4) == 0) request.mutable_options()->add_disabled_passes("pass");
  if (below(3) == 0) request.set_session("s");
  if (below(3) == 0) request.set_priority(below(100) - 50);
  if (below(3) == 0) request.add_results()->set_handle("kept");
  for (int i = below(4); i > 0; --i) {
    v1::Argument* argument = request.add_arguments();
    if (below(8) == 0) {
      argument->set_handle("h");
      continue;
    }
    v1::Tensor* tensor = argument->mutable_tensor();
    tensor->set_dtype(static_cast<v1::DType>(below(12)));
    for (int k = below(4); k > 0; --k) tensor->add_shape(static_cast<int64_t>((*random)() >> below(64)));
    tensor->set_order(static_cast<v1::MemoryOrder>(below(3)));
    const int sizes[] = {0, 10, 4095, 4096, 4097, 5000, 20'000};
    tensor->set_data(std::string(static_cast<size_t>(sizes[below(7)]), static_cast<char>(below(256))));
  }
  return request.SerializeAsString();
}

TEST(ReceivedExecuteTest, RandomMessagesInRandomSlices) {
  std::mt19937_64 random(20);
  for (int i = 0; i < 2000; ++i) {
    // Two messages one after the other are one, merged.
    std::string bytes = RandomRequest(&random);
    if (i % 3 == 0) bytes += RandomRequest(&random);
    ASSERT_EQ(DifferenceFromProtobuf(bytes, &random), "") << i;
  }
}

TEST(ReceivedExecuteTest, MutatedMessagesInRandomSlices) {
  std::mt19937_64 random(21);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = RandomRequest(&random);
    for (size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
      // A change matters at the begin of a field: mostly near the ends of the message.
      const size_t near = std::min<size_t>(bytes.size(), 64);
      const size_t at = below(3) == 0   ? below(bytes.size())
                        : below(2) == 0 ? below(near)
                                        : bytes.size() - 1 - below(near);
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
          break;
        case 1:
          bytes.insert(at, 1, static_cast<char>(below(256)));
          break;
        case 2:
          bytes.erase(at, 1 + below(3));
          break;
        default:
          bytes.resize(at);
      }
    }
    ASSERT_EQ(DifferenceFromProtobuf(bytes, &random), "") << i;
  }
}

TEST(SliceReaderTest, ReadsAcrossSlices) {
  const std::vector<grpc::Slice> slices = {grpc::Slice(std::string("\x96")), grpc::Slice(""), grpc::Slice("\x01\x03z"),
                                           grpc::Slice("abcdef")};
  SliceReader reader(slices);
  uint64_t value = 0;
  int64_t length = 0;
  EXPECT_TRUE(reader.ReadVarint(&value));
  EXPECT_EQ(value, 150u);
  EXPECT_TRUE(reader.ReadLength(&length));
  EXPECT_EQ(length, 3);
  SliceReader again = reader;
  std::vector<absl::string_view> pieces;
  EXPECT_TRUE(reader.ReadPieces(3, &pieces));
  EXPECT_EQ(pieces, (std::vector<absl::string_view>{"z", "ab"}));
  uint32_t fixed = 0;
  EXPECT_TRUE(reader.ReadFixed32(&fixed));
  EXPECT_EQ(fixed, 0x66656463u);
  EXPECT_EQ(reader.remaining(), 0);
  uint8_t byte = 0;
  EXPECT_FALSE(reader.ReadByte(&byte));
  EXPECT_FALSE(reader.Skip(1));
  EXPECT_TRUE(again.Skip(7));
  EXPECT_EQ(again.position(), reader.position());
}

TEST(SliceReaderTest, VarintsThatEncodersDoNotWrite) {
  const auto read = [](std::string bytes) {
    const std::vector<grpc::Slice> slices = {grpc::Slice(bytes)};
    uint64_t value = 0;
    return SliceReader(slices).ReadVarint(&value);
  };
  EXPECT_TRUE(read(std::string(1, '\0')));
  EXPECT_FALSE(read(std::string("\x80\x00", 2))) << "a byte that could be left out";
  EXPECT_FALSE(read("\x80")) << "breaks off";
  EXPECT_TRUE(read(std::string(9, '\xFF') + "\x01"));
  EXPECT_FALSE(read(std::string(9, '\xFF') + "\x02")) << "beyond 64 bits";
}

}  // namespace
}  // namespace tensord::server
