# One library, one test executable and any fuzzers per folder of src; a new file needs no edit here.
#
#   src/<d>/**/*.cpp          -> static library chute_<d>
#   src/<d>/**/*_test.cpp     -> executable chute_<d>_test, one CTest test
#   src/<d>/**/*_fuzz.cpp     -> one libFuzzer executable each, named after the file
#   src/<d>/**/*.ir           -> text tests, run by lit
#   src/<d>/folder.cmake      -> included when it exists: extra libraries, per-file options

# Sorts src/<name>/**/*.cpp into `sources`, `tests` and `fuzzers` of the caller.
macro(chute_sort_sources name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
endmacro()

# Which third-party library (beyond the header-only ones) a folder may link.
set(chute_libraries_support TBB::tbb ${CHUTE_DEFLATE_LIBRARY})
set(chute_libraries_pt2 simdjson::simdjson)
set(chute_libraries_cli CLI11::CLI11)

# A glob, so that adding the file to a configured build is noticed.
macro(chute_include_extra name)
  file(GLOB extra CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/folder.cmake)
  if(extra)
    include(${extra})
  endif()
endmacro()

function(chute_link_folders target scope)
  foreach(used ${ARGN})
    if(TARGET ${used})
      target_link_libraries(${target} ${scope} ${used})
    else()
      target_link_libraries(${target} ${scope} chute_${used})
    endif()
  endforeach()
endfunction()

function(chute_add_tests name)
  add_executable(chute_${name}_test ${ARGN})
  target_link_libraries(chute_${name}_test PRIVATE chute_${name} GTest::gmock GTest::gtest_main
                                                   rapidcheck)
  add_test(NAME unit.${name} COMMAND chute_${name}_test)
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 600)
endfunction()

function(chute_add_fuzzers name)
  foreach(file ${ARGN})
    get_filename_component(fuzzer ${file} NAME_WE)
    add_executable(${fuzzer} ${file})
    target_link_libraries(${fuzzer} PRIVATE chute_${name})
    target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
    set_property(GLOBAL APPEND PROPERTY CHUTE_FUZZERS ${fuzzer})
  endforeach()
endfunction()

function(chute_folder name)
  cmake_parse_arguments(arg "" "" "USES;TEST_USES" ${ARGN})
  chute_sort_sources(${name})
  if(sources)
    set(scope PUBLIC)
    add_library(chute_${name} STATIC ${sources})
    # With fuzzing on, only what a fuzzer links is worth building.
    set_target_properties(chute_${name} PROPERTIES EXCLUDE_FROM_ALL ${CHUTE_FUZZ})
  else()
    set(scope INTERFACE)
    add_library(chute_${name} INTERFACE)
  endif()
  target_include_directories(chute_${name} ${scope} ${CMAKE_SOURCE_DIR}/src
                                                    ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(chute_${name} ${scope} chute_external ${chute_libraries_${name}})
  chute_link_folders(chute_${name} ${scope} ${arg_USES})
  if(tests AND CHUTE_TESTS)
    # The one test that reads a .bfbs alone gets the path: in every compile command it would keep
    # two checkouts from sharing a compiler cache.
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/${name}/table_test.cpp PROPERTIES
      COMPILE_DEFINITIONS CHUTE_SCHEMA_DIR="${CMAKE_BINARY_DIR}/generated/schema")
    chute_add_tests(${name} ${tests})
    # Not chute_link_folders: a test may use a folder that is declared later.
    list(TRANSFORM arg_TEST_USES PREPEND chute_)
    target_link_libraries(chute_${name}_test PRIVATE ${arg_TEST_USES})
  endif()
  if(fuzzers AND CHUTE_FUZZ)
    chute_add_fuzzers(${name} ${fuzzers})
    list(TRANSFORM arg_TEST_USES PREPEND chute_)
    foreach(file ${fuzzers})
      get_filename_component(fuzzer ${file} NAME_WE)
      target_link_libraries(${fuzzer} PRIVATE ${arg_TEST_USES})
    endforeach()
  endif()
  chute_include_extra(${name})
endfunction()

# A folder that ends in an executable. Its sources also form a library, so that its tests can link it.
function(chute_program name program)
  cmake_parse_arguments(arg "" "" "USES" ${ARGN})
  chute_sort_sources(${name})
  set(main ${CMAKE_SOURCE_DIR}/src/${name}/main.cpp)
  if(NOT main IN_LIST sources)
    return()
  endif()
  list(REMOVE_ITEM sources ${main})
  add_executable(${program} ${main} ${sources})
  if(CHUTE_FUZZ)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_compile_definitions(${program} PRIVATE CHUTE_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${program} PRIVATE chute_external ${chute_libraries_${name}})
  chute_link_folders(${program} PRIVATE ${arg_USES})
  if(tests AND CHUTE_TESTS)
    add_executable(chute_${name}_test ${tests} ${sources})
    target_include_directories(chute_${name}_test PRIVATE ${CMAKE_SOURCE_DIR}/src
                                                          ${CMAKE_SOURCE_DIR}/include)
    target_compile_definitions(chute_${name}_test PRIVATE CHUTE_VERSION="${PROJECT_VERSION}")
    target_link_libraries(chute_${name}_test PRIVATE chute_external ${chute_libraries_${name}}
                                                     GTest::gmock GTest::gtest_main rapidcheck)
    chute_link_folders(chute_${name}_test PRIVATE ${arg_USES})
    add_test(NAME unit.${name} COMMAND chute_${name}_test)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 600)
  endif()
  chute_include_extra(${name})
  install(TARGETS ${program} RUNTIME)
endfunction()

# schema/*.fbs -> "schema/<name>_generated.h" without flatc's object API, which is three times the
# compile time, and <name>.bfbs, which tests read to compare the operator tables with the schema.
function(chute_schemas)
  add_library(chute_schema INTERFACE)
  set(out ${CMAKE_BINARY_DIR}/generated/schema)
  target_include_directories(chute_schema SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/generated)
  file(GLOB schemas CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schema/*.fbs)
  set(generated)
  foreach(schema ${schemas})
    get_filename_component(stem ${schema} NAME_WE)
    add_custom_command(
      OUTPUT ${out}/${stem}_generated.h ${out}/${stem}.bfbs
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND ${CHUTE_FLATC} --cpp -o ${out} ${schema}
      COMMAND ${CHUTE_FLATC} --binary --schema -o ${out} ${schema}
      DEPENDS ${schema}
      COMMENT "flatc ${stem}.fbs"
      VERBATIM)
    list(APPEND generated ${out}/${stem}_generated.h ${out}/${stem}.bfbs)
  endforeach()
  if(generated)
    add_custom_target(chute_schema_generate DEPENDS ${generated})
    add_dependencies(chute_schema chute_schema_generate)
  endif()
endfunction()

# Text tests are one CTest test: lit finds the .ir files itself and reports each.
function(chute_text_tests)
  if(NOT TARGET chute)
    return()
  endif()
  find_path(CHUTE_FILECHECK_DIR FileCheck PATHS /usr/lib/llvm-19/bin)
  configure_file(${CMAKE_SOURCE_DIR}/test/lit.site.cfg.py.in ${CMAKE_BINARY_DIR}/test/lit.site.cfg.py
                 @ONLY)
  add_test(NAME text COMMAND ${CMAKE_SOURCE_DIR}/tools/lit ${CMAKE_BINARY_DIR}/test)
  set_tests_properties(text PROPERTIES LABELS text TIMEOUT 900)
endfunction()

# bench/*_bench.cpp -> one google-benchmark executable each; bench/bare_read.cpp -> the process that
# bench/run.py times beside chute. `make bench` runs them all.
function(chute_benchmarks)
  file(GLOB benches CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.cpp)
  foreach(file ${benches})
    get_filename_component(bench ${file} NAME_WE)
    add_executable(${bench} ${file})
    target_link_libraries(${bench} PRIVATE chute_pt2 chute_convert benchmark::benchmark_main)
  endforeach()
  add_executable(bare_read ${CMAKE_SOURCE_DIR}/bench/bare_read.cpp)
  target_link_libraries(bare_read PRIVATE chute_pt2)
endfunction()
