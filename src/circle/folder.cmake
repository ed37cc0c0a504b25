# g++ 12 mistakes the move of a Boost small_vector for a copy past its inline storage.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(chute_circle PRIVATE -Wno-stringop-overread)
  if(TARGET chute_circle_test)
    target_compile_options(chute_circle_test PRIVATE -Wno-stringop-overread)
  endif()
endif()
