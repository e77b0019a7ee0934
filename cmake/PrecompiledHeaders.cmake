# The headers that take most of the time of compiling are compiled once for all targets with the same options.

set(precompiled ${CMAKE_CURRENT_LIST_DIR}/precompiled)
set(precompiled_standard ${precompiled}/standard.h)
set(precompiled_json ${precompiled}/json.h)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # ccache only finds what another checkout compiled if headers are not named by their whole paths.
  target_include_directories(cria_options INTERFACE ${CMAKE_CURRENT_LIST_DIR})
  set(precompiled_standard <precompiled/standard.h>)
  set(precompiled_json <precompiled/json.h>)
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/empty.cc CONTENT "")

# cria_precompiled_headers(NAME HEADERS... [OPTIONS options...]): compiles the headers with these options. A target whose
# options are the same, but for definitions, uses them by `target_precompile_headers(TARGET REUSE_FROM NAME)`.
function(cria_precompiled_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled/empty.cc)
  target_link_libraries(${name} PRIVATE cria_options)
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
endfunction()

# The library's code that runs for every token, and the library's other code.
cria_precompiled_headers(cria_hot_headers ${precompiled_standard} OPTIONS ${cria_no_exceptions})
cria_precompiled_headers(cria_cold_headers ${precompiled_standard} OPTIONS ${cria_small} ${cria_no_exceptions})
# Programs, the converter and the server.
if(TARGET nlohmann_json::nlohmann_json)
  cria_precompiled_headers(cria_program_headers ${precompiled_standard} ${precompiled_json} OPTIONS ${cria_small})
  target_link_libraries(cria_program_headers PRIVATE nlohmann_json::nlohmann_json)
  add_library(cria_json STATIC ${precompiled}/json.cc)
  target_link_libraries(cria_json PUBLIC nlohmann_json::nlohmann_json PRIVATE cria_options)
  target_compile_options(cria_json PRIVATE ${cria_small})
endif()

# cria_precompile(TARGET PRECOMPILED): lets a target use precompiled headers; with JSON, it is linked with its code.
function(cria_precompile target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
  if(name STREQUAL "cria_program_headers")
    target_link_libraries(${target} PRIVATE cria_json)
  endif()
endfunction()
