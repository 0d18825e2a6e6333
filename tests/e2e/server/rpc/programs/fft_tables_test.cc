// Tables of Fourier transforms belong to a server, which bounds and counts them.
#include <prometheus/metric_family.h>

#include <string>

#include "gtest/gtest.h"
#include "tensord/fft/v1/fft.pb.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

v1::Graph Transform(int64_t length) {
  v1::Graph graph =
      GraphOf("inputs { name: \"x\" type { dtype: DTYPE_F64 shape { size: " + std::to_string(length) +
              " } } }\nnodes { name: \"y\" inputs: \"x\" extension { } }\n" + "outputs { name: \"y\" value: \"y\" }");
  fft::v1::Fft fft;
  fft.set_kind(fft::v1::Fft::KIND_RFFT);
  fft.add_axes(0);
  graph.mutable_nodes(0)->mutable_extension()->mutable_op()->PackFrom(fft);
  return graph;
}

void CompileLengths(InProcessServer& server, int64_t first, int64_t end) {
  for (int64_t length = first; length < end; ++length) {
    v1::CompileRequest request;
    *request.mutable_graph() = Transform(length);
    v1::CompileResponse response;
    const grpc::Status status = Compile(server.stub(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
}

double ValueOf(const InProcessServer& server, const std::string& name) {
  for (const auto& source : server.parts().collectables) {
    for (const auto& family : source->Collect()) {
      if (family.name != name) continue;
      return family.type == prometheus::MetricType::Counter ? family.metric[0].counter.value
                                                            : family.metric[0].gauge.value;
    }
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(FftTablesTest, AreBoundedByTheSettingAndCounted) {
  if (HasHostCuda()) GTEST_SKIP() << "they are the CPU's";
  InProcessServer small({"cpu.fft_table_bytes=100000"}), large;
  CompileLengths(small, 500, 700);
  EXPECT_GT(ValueOf(small, "tensord_fft_table_evictions_total"), 0);
  EXPECT_LE(ValueOf(small, "tensord_fft_table_bytes"), 100'000);
  EXPECT_GT(ValueOf(small, "tensord_fft_table_bytes"), 0);
  EXPECT_EQ(ValueOf(large, "tensord_fft_table_bytes"), 0) << "each server has its own";
  CompileLengths(large, 500, 700);
  EXPECT_GT(ValueOf(large, "tensord_fft_table_bytes"), 100'000);
  EXPECT_EQ(ValueOf(large, "tensord_fft_table_evictions_total"), 0);
  EXPECT_GT(small.Metric("tensord_fft_table_lookups_total", "miss"),
            large.Metric("tensord_fft_table_lookups_total", "miss"))
      << "what was dropped is made again";
}

}  // namespace
}  // namespace tensord
