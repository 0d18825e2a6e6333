#ifndef TENSORD_TESTS_HOSTCUDA_LIBRARY_OBJECTS_H_
#define TENSORD_TESTS_HOSTCUDA_LIBRARY_OBJECTS_H_

#include <cstddef>

namespace tensord::cuda::host {

// Return the number of objects of each library that are not destroyed yet.
size_t LiveBlasLtObjects();
size_t LiveBlasObjects();
size_t LiveSolverObjects();
size_t LiveFftPlans();

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_LIBRARY_OBJECTS_H_
