# Everything comes from the system's packages (tools/bootstrap has the list); nothing is fetched.
# What a header-only library needs beyond the default include path is in chute_external.

find_package(Threads REQUIRED)
# Debian's package ships no CMake configuration.
find_path(CHUTE_DEFLATE_INCLUDE libdeflate.h REQUIRED)
find_library(CHUTE_DEFLATE_LIBRARY deflate REQUIRED)
find_package(fmt REQUIRED)
find_package(simdjson REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(TBB REQUIRED)
find_path(CHUTE_XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(CHUTE_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)

# The package was called FlatBuffers up to 2.0 and flatbuffers afterwards. flatc and the headers must
# be of one version: generated code asserts it.
find_package(flatbuffers QUIET)
if(NOT flatbuffers_FOUND)
  find_package(FlatBuffers REQUIRED)
endif()
find_program(CHUTE_FLATC flatc REQUIRED)

add_library(chute_external INTERFACE)
target_include_directories(chute_external SYSTEM INTERFACE
                           ${CHUTE_XXHASH_INCLUDE} ${CHUTE_EXPECTED_INCLUDE})
target_link_libraries(chute_external INTERFACE Threads::Threads fmt::fmt-header-only Boost::headers
                                               Eigen3::Eigen)

if(CHUTE_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  find_package(ZLIB REQUIRED) # tests pack archives with it
endif()
if(CHUTE_BENCH)
  find_package(benchmark REQUIRED)
endif()
