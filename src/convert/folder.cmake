# Tests read the shared corpus where there is one.
if(TARGET chute_convert_test)
  target_compile_definitions(chute_convert_test PRIVATE CHUTE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endif()
