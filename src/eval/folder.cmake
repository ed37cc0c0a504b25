if(TARGET chute_eval_test)
  target_compile_definitions(chute_eval_test PRIVATE
                             CHUTE_EVAL_TESTDATA="${CMAKE_SOURCE_DIR}/src/eval/testdata")
endif()
