# Compiler and linker settings that hold for every target of this project.

# Results must not depend on which machine, or which optimization level, contracted a*b+c.
add_compile_options(-ffp-contract=off -fno-math-errno -Wall -Wextra)
if(CHUTE_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 at -O3 sees overlapping copies inside std::string's own concatenation.
  add_compile_options($<$<CONFIG:Release>:-Wno-restrict>)
endif()

# Same objects from any checkout path: no build path in binaries, and ccache hits across worktrees.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

# Line tables are enough for backtraces and halve what compiler and linker have to move.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
if(CHUTE_ASSERTIONS)
  add_compile_definitions(_GLIBCXX_ASSERTIONS CHUTE_ASSERTIONS=1)
  foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_${config} "${CMAKE_CXX_FLAGS_${config}}")
  endforeach()
endif()

if(CHUTE_SANITIZE)
  add_compile_options(-fsanitize=${CHUTE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CHUTE_SANITIZE})
  if(CHUTE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports uninitialized and dangling uses inside the standard library under sanitizers.
    add_compile_options(-Wno-maybe-uninitialized -Wno-uninitialized -Wno-stringop-overflow
                        -Wno-array-bounds -Wno-restrict -Wno-tsan)
    if(CHUTE_SANITIZE MATCHES "thread")
      add_compile_options(-Wno-stringop-overread)
    endif()
  endif()
endif()
if(CHUTE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "CHUTE_FUZZ needs clang (preset `fuzz`)")
  endif()
  # clang warns of what libstdc++ 12 itself calls inside std::stable_sort.
  add_compile_options(-fsanitize=fuzzer-no-link -Wno-deprecated-declarations)
endif()

find_program(CHUTE_CCACHE ccache)
if(CHUTE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CHUTE_CCACHE})
endif()

find_program(CHUTE_MOLD mold)
find_program(CHUTE_LLD NAMES ld.lld ld.lld-19)
if(CHUTE_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(CHUTE_LLD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=lld)
endif()
