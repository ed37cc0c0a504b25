if(TARGET chute_aten_test)
  target_compile_definitions(chute_aten_test PRIVATE CHUTE_TEST_DATA="${CMAKE_SOURCE_DIR}/test/data")
endif()
