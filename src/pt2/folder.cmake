# Scanning JSON lives on population counts and byte masks. Every 64-bit x86 since 2010 has these
# instructions (README, "What it needs"); simdjson's lazy parser picks its code by these flags, too.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_options(chute_pt2 PRIVATE -march=x86-64-v2 -mpclmul)
endif()

# Tests read the archives in the source tree, and the shared corpus where there is one.
if(TARGET chute_pt2_test)
  target_compile_definitions(chute_pt2_test PRIVATE CHUTE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(chute_pt2_test PRIVATE ZLIB::ZLIB)
endif()
