target_link_libraries(chute_eval PRIVATE ZLIB::ZLIB)
