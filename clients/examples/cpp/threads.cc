// Shares one client, one program and lazy tensors among threads; all get the same bits.
//
//   threads [TARGET]
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

Tensor Layer(const Tensor& x) { return Tanh(MatMul(x, Transpose(x)) / 100) + 1; }

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  const HostTensor x = Eval(*client, Sin(Iota(DType::kF32, {128, 128}) + Iota(DType::kF32, {128, 128}, 1))).value();
  const Tensor y = Layer(Tensor::FromHost(x));
  const HostTensor expected = Eval(*client, y).value();
  const auto layer = Compile(*client, Layer, x).value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int call = 0; call < 50; ++call) {
        const absl::StatusOr<HostTensor> value = thread % 2 == 0 ? Eval(*client, y) : layer(x);
        if (!value.ok() || std::memcmp(value->bytes(), expected.bytes(), expected.size_bytes()) != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("200 calls, %d of them wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}
