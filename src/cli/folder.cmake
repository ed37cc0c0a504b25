# CLI11 takes most of a minute to compile under a sanitizer and gains nothing from it or from the
# optimizer: this file only declares options.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/cli/args.cpp
                            PROPERTIES COMPILE_OPTIONS "-O0;-fno-sanitize=all")
