#ifndef TENSORD_TESTS_E2E_SERVER_HOST_CUDA_DEVICE_H_
#define TENSORD_TESTS_E2E_SERVER_HOST_CUDA_DEVICE_H_

#include <memory>

#include "engine/exec/backend/backend.h"

namespace tensord {

// Tells whether servers of these tests have a CUDA device, which the host plays, in the place of the CPU: if the
// environment variable TENSORD_TEST_CUDA is set, to the folder of the device's libraries.
bool HasHostCuda();

// Makes that device. It calls itself a CPU, so that names and settings of the tests hold; kernels are compiled once for
// all servers of the process. Ends the process if there is none.
std::unique_ptr<Backend> MakeHostCudaDevice();

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_HOST_CUDA_DEVICE_H_
