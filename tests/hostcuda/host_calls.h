#ifndef TENSORD_TESTS_HOSTCUDA_HOST_CALLS_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_CALLS_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace tensord::cuda::host {

// The calls of each function of the device, of which a test may let one of each fail. Thread-safe.
class Calls {
 public:
  static Calls& Get();

  // Counts a call. Returns 0, or the error with which this one is to fail; `usual` if the test named none.
  int Count(const char* function, int usual);
  long Of(const char* function);
  // Adds to the bytes that a function has copied, and returns their sum.
  void AddBytes(const char* function, size_t bytes);
  long BytesOf(const char* function);
  // Lets the n-th call from now on fail, from 1: one of each function at a time; 0: each of them. No name: takes all
  // back.
  void Fail(const char* function, long n, int result);

 private:
  struct Failure {
    long in = 0;  // so many calls, from 1
    int with = 0;
  };

  Calls();
  std::mutex mutex_;
  std::map<std::string, long> counts_;
  std::map<std::string, long> bytes_;
  std::map<std::string, Failure> failures_;
};

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_CALLS_H_
