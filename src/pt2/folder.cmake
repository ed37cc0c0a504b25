# Tests read the archives in the source tree, and the shared corpus where there is one.
if(TARGET chute_pt2_test)
  target_compile_definitions(chute_pt2_test PRIVATE CHUTE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(chute_pt2_test PRIVATE ZLIB::ZLIB)
endif()
