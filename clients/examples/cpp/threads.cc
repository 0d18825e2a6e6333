// Shares one client, one program and lazy tensors among threads; all get the same bits.
//
//   threads [TARGET]
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

namespace {

Tensor Layer(const Tensor& x) { return Tanh(MatMul(x, Transpose(x)) / 100) + 1; }

absl::Status Run(Client& client) {
  constexpr int64_t kSize = 128;
  std::vector<float> values(kSize * kSize);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) - 8;
  const absl::StatusOr<HostTensor> x = HostTensor::FromVector(std::move(values), {kSize, kSize});
  if (!x.ok()) return x.status();
  const Tensor y = Layer(Tensor::FromHost(*x));
  const absl::StatusOr<HostTensor> expected = Eval(client, y);
  if (!expected.ok()) return expected.status();
  const auto layer = Compile(client, Layer, *x);
  if (!layer.ok()) return layer.status();

  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int call = 0; call < 50; ++call) {
        const absl::StatusOr<HostTensor> value = thread % 2 == 0 ? Eval(client, y) : (*layer)(*x);
        if (!value.ok() || std::memcmp(value->bytes(), expected->bytes(), expected->size_bytes()) != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("200 calls, %d of them wrong\n", wrong.load());
  return wrong == 0 ? absl::OkStatus() : absl::InternalError("results differ");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = argc > 1 ? argv[1] : ""});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
