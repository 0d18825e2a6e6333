#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/families/all_families.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/programs/stored_program.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/codec/graph_codec.h"
#include "tensord/v1/compute.pb.h"
#include "tests/fuzz/entries.h"
#include "tests/testlib/golden.h"
#include "tests/testlib/graphs/random_graph.h"

namespace tensord {
namespace {

// The fuzz targets without a fuzzer: seeds from the golden cases, changed at random, the same on every machine.

constexpr int kMutantsPerSeed = 40;

// Changes a few bytes: flips, overwrites, inserts, removes, repeats, or takes a piece of another seed.
std::string Mutate(std::string bytes, const std::string& other, std::mt19937_64* random) {
  const auto below = [random](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(*random); };
  const size_t changes = 1 + below(4);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = below(bytes.size()), length = 1 + below(std::min<size_t>(bytes.size() - at, 16));
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 5:
        if (!other.empty()) bytes.insert(at, other.substr(below(other.size()), length));
        break;
    }
  }
  return bytes;
}

std::vector<std::string> GoldenInputs(bool text_form) {
  std::vector<std::string> inputs;
  for (const auto& path : GoldenFilesIn("tests/golden")) {
    const absl::StatusOr<GoldenFile> file = ReadGoldenFile(path);
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) continue;
    for (const GoldenCase& c : file->cases) {
      // The cases of the passes begin with a comment that names them.
      const bool is_text = absl::StartsWith(c.input, "graph ") || absl::StartsWith(c.input, "// ");
      if (is_text == text_form) inputs.push_back(c.input);
    }
  }
  EXPECT_FALSE(inputs.empty());
  return inputs;
}

void RunMutants(const std::vector<std::string>& seeds, void (*entry)(absl::string_view), uint64_t seed,
                int mutants_per_seed = kMutantsPerSeed) {
  std::mt19937_64 random(seed);
  entry("");
  for (size_t i = 0; i < seeds.size(); ++i) {
    entry(seeds[i]);
    for (int k = 0; k < mutants_per_seed; ++k)
      entry(Mutate(seeds[i], seeds[(i + static_cast<size_t>(k)) % seeds.size()], &random));
  }
}

TEST(MutationTest, GraphTextSurvives) { RunMutants(GoldenInputs(/*text_form=*/true), &FuzzGraphText, 1); }

TEST(MutationTest, GraphBytesSurvive) {
  std::vector<std::string> seeds;
  for (const std::string& text : GoldenInputs(/*text_form=*/false)) {
    v1::Graph graph;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph)) << text;
    seeds.push_back(graph.SerializeAsString());
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const absl::StatusOr<v1::Graph> graph = codec::EncodeGraph(RandomGraph(FamilyRegistry(), &random));
    ASSERT_TRUE(graph.ok()) << graph.status();
    seeds.push_back(graph->SerializeAsString());
  }
  RunMutants(seeds, &FuzzGraphWire, 3);
}

TEST(MutationTest, StoredProgramsSurvive) {
  std::vector<std::string> seeds = GoldenInputs(/*text_form=*/true);
  RunMutants(seeds, &FuzzStoredProgram, 7, 4);
  // The fields alone, so that mutants get past the frame.
  constexpr size_t kHeaderBytes = 20, kChecksumBytes = 64;
  for (std::string& seed : seeds) {
    const absl::StatusOr<Graph> graph = ParseGraph(seed, FamilyRegistry());
    if (!graph.ok()) continue;
    const std::string entry = EncodeStoredProgram(*graph, {.device = "cpu:0"}, Fingerprint());
    seed = entry.substr(kHeaderBytes, entry.size() - kHeaderBytes - kChecksumBytes);
  }
  RunMutants(seeds, &FuzzStoredProgram, 8, 8);
}

TEST(MutationTest, SizesSurvive) {
  std::mt19937_64 random(4);
  std::vector<std::string> seeds = {"dim(0, 1)*n + 3", "-9223372036854775808", "floordiv(n, 0)", "((((n))))", "n - n"};
  for (int i = 0; i < 300; ++i) seeds.push_back(RandomDimExpr(&random, /*operand_axes=*/true).ToString());
  RunMutants(seeds, &FuzzDimExpr, 5);
}

TEST(MutationTest, EinsumsSurvive) {
  std::vector<std::string> seeds = {
      "ij,jk,kl->il\n2,3;3,n;n,2\n0,2;0,1\n\n",          "ia,ja,ka,ijk->a\n2,3;2,3;2,3;2,2,2\n\n2\n1000",
      "...ij,...jk->...ik\nm,2,3;n,3,2\n\n\n",           "...,...,...->...\n2,m;n,2;1\n\n0\n",
      "((ij,jk),(kl,lm)),m->i\n2,2;2,2;2,2;2,2;2\n\n\n", "iij,jj,->jii\n2,2,3;3,3;\n\n3\n",
      "i,j,k,ijk->\n9;9;9;9,9,9\n0,1;0,1;0,1\n\n8"};
  RunMutants(seeds, &FuzzEinsum, 6, 1'000);
}

// Bytes of a field of the wire format, in which 0xFE counts as 4096.
std::string Field(int number, const std::string& content) {
  size_t length = 0;
  for (const char c : content) length += c == '\xFE' ? 4096 : 1;
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  for (; length >= 0x80; length >>= 7) bytes.push_back(static_cast<char>((length & 0x7F) | 0x80));
  bytes.push_back(static_cast<char>(length));
  return bytes + content;
}

TEST(MutationTest, RequestsSurvive) {
  const std::string data = Field(15, "\xFE\xFE"), small = Field(15, "abc"), shape = Field(2, "\x03\x05");
  const std::string tensor = "\x08\x04" + shape + "\x18\x02" + data, argument = Field(5, Field(1, tensor));
  const std::vector<std::string> seeds = {
      argument,
      "\x08\x07" + Field(2, "fingerprint") + argument + Field(5, Field(1, shape + small)) + Field(6, "\x08\x01") +
          Field(7, "session") + "\x40\x05\x48\x01",
      Field(5, Field(1, data + tensor)) + argument,
      Field(5, Field(1, tensor) + Field(1, tensor)),
      argument + Field(5, Field(2, "handle")) + argument,
      Field(3, Field(1, "graph")) + argument + Field(3, Field(1, "again")) + Field(4, Field(1, "cpu"))};
  RunMutants(seeds, &FuzzReceivedExecute, 7, 2'000);
}

TEST(MutationTest, ResponsesSurvive) {
  v1::ExecuteResponse full, error;
  full.set_request_id(300);
  for (const int64_t size : {0, 2, 3}) {
    v1::Tensor* tensor = full.add_results()->mutable_tensor();
    tensor->set_dtype(v1::DTYPE_F32);
    tensor->add_shape(size);
    tensor->add_shape(2);
    tensor->set_order(size == 2 ? v1::MEMORY_ORDER_COLUMN_MAJOR : v1::MEMORY_ORDER_UNSPECIFIED);
    tensor->set_data(std::string(static_cast<size_t>(size * 8), 'x'));
  }
  full.mutable_results(1)->set_handle("kept");
  full.mutable_stats()->set_device("cpu:0");
  error.set_request_id(7);
  error.mutable_error()->set_code(9);
  error.mutable_error()->set_message("no such handle");
  error.mutable_error()->mutable_detail()->set_reason("HANDLE_UNKNOWN");
  RunMutants({full.SerializeAsString(), error.SerializeAsString()}, &FuzzExecuteResponse, 10, 20'000);
}

TEST(MutationTest, FilesOfCallersSurvive) {
  const std::string hash(64, 'a');
  RunMutants({"a read cn:a\n", "team-a execute,read " + hash + "\n# more\nb admin spiffe://x/y\n",
              "\tx  read,admin\tdns:x.y\r\n\n"},
             &FuzzIdentityTable, 8, 5'000);
}

TEST(MutationTest, RequestsOfHttpSurvive) {
  RunMutants({"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "\r\nHEAD http://a/metrics?b HTTP/1.0\n\nrest",
              "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
              "GET /" + std::string(8192, 'x')},
             &FuzzHttpRequest, 11, 1'000);
}

TEST(MutationTest, TraceContextsSurvive) {
  RunMutants({"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
              "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more",
              "rojo=00f067aa0ba902b7, ,congo=t61rcWkgMzE,fw529a3039@dt=a b",
              "a=" + std::string(200, 'x') + ",b=" + std::string(200, 'y') + ",c=" + std::string(120, 'z')},
             &FuzzTraceContext, 9, 5'000);
}

TEST(MutationTest, ReflectionRequestsSurvive) {
  RunMutants({Field(3, "tensord/v1/compute.proto"), Field(4, "tensord.v1.ExecuteRequest.program"),
              Field(5, Field(1, "google.protobuf.FieldOptions") + "\x10\x01"), Field(6, "google.protobuf.FieldOptions"),
              Field(7, "")},
             &FuzzReflection, 9, 2'000);
}

TEST(MutationTest, PacketsOfTheBrokerSurvive) {
  const auto packet = [](const std::string& bytes) { return std::string(1, static_cast<char>(bytes.size())) + bytes; };
  const std::string small = packet("\x12\x02\x08\x40"), large = packet("\x12\x05\x08\xff\xff\xff\x7f");
  const std::string named = packet(Field(1, "Bearer x") + "\x12\x03\x08\x80\x20");
  const std::string free = packet(Field(3, Field(1, std::string(32, 'a'))));
  RunMutants({small + small + large + free, named + small, free + packet("") + small + packet("\xff\xff")},
             &FuzzBrokerPackets, 9, 1'000);
}

}  // namespace
}  // namespace tensord
