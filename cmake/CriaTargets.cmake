# Makes a target of each folder. The headers of a folder are found only through its own include root, so
# that a folder can include only the headers of folders that it links: any other dependency between
# folders fails to compile.

# Keeps what was compiled, so that another checkout, or this one after a change was taken back, need not compile it again.
# ./dev says where, and that paths below the checkout are compared relative to it; for this, __FILE__ is relative, too.
find_program(CRIA_CCACHE ccache)
if(CRIA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/compile_with_cache.sh ${CRIA_CCACHE})
endif()
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# What ccache needs to know that a precompiled header is the same.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
else()
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()

add_library(cria_options INTERFACE)
cmake_host_system_information(RESULT memory_mb QUERY TOTAL_PHYSICAL_MEMORY)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND memory_mb GREATER 8000)
  # GCC collects garbage later: a tenth of the time for half a GiB more of each compiler's memory. Not in debug builds,
  # whose options clang-tidy reads.
  target_compile_options(cria_options INTERFACE $<$<CONFIG:Release>:--param=ggc-min-heapsize=524288>)
endif()
if(CRIA_QUICK_BUILD)
  # Warnings are for developers.
  target_compile_options(cria_options INTERFACE -w)
else()
  # Designated initializers may leave fields at their defaults.
  target_compile_options(cria_options INTERFACE
    -Wall -Wextra -Wshadow -Wno-missing-field-initializers -Werror)
endif()
# The linker removes functions that a program does not call.
target_compile_options(cria_options INTERFACE -ffunction-sections -fdata-sections)
target_link_options(cria_options INTERFACE -Wl,--gc-sections -Wl,--as-needed)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
  # Stores relative relocations as bits instead of 24 bytes each; glibc supports this from 2.36 on.
  target_link_options(cria_options INTERFACE -Wl,-z,pack-relative-relocs)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  # Code and read-only data share a segment, because separate segments are padded to whole pages. On Arm, this
  # is GNU ld's default.
  target_link_options(cria_options INTERFACE -Wl,-z,noseparate-code)
endif()
if(CRIA_SANITIZE)
  # The vptr check needs RTTI, which the runtime does not have.
  target_compile_options(cria_options INTERFACE
    -fsanitize=${CRIA_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(cria_options INTERFACE -fsanitize=${CRIA_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns falsely more often then, and its documentation advises against making errors of these warnings.
    target_compile_options(cria_options INTERFACE -Wno-error)
  endif()
endif()

# Options for code that neither throws nor catches exceptions. Exceptions of others, such as operator new's, must
# still pass through it to the C API. For this, 32-bit Arm needs unwind tables, which other processors always have.
set(cria_no_exceptions -fno-exceptions -fno-rtti)
# Options for code whose speed does not matter.
set(cria_small $<$<CONFIG:Release>:-Os>)
if(CRIA_QUICK_BUILD)
  set(cria_small -O1)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^armv7")
  list(APPEND cria_no_exceptions -funwind-tables)
endif()

# cria_include_root(VARIABLE FOLDER [NAME]): sets VARIABLE to an include root with which the headers of FOLDER, an
# absolute path, are included as "NAME/header.h". NAME is by default the folder's own name; it may be outer/inner.
function(cria_include_root variable folder)
  set(name ${ARGV2})
  if(NOT name)
    get_filename_component(name ${folder} NAME)
  endif()
  string(REPLACE "/" "-" root ${name})
  set(root ${CMAKE_BINARY_DIR}/include-roots/${root})
  cmake_path(GET name PARENT_PATH outer)
  file(MAKE_DIRECTORY ${root}/${outer})
  file(CREATE_LINK ${folder} ${root}/${name} SYMBOLIC)
  set(${variable} ${root} PARENT_SCOPE)
endfunction()

# cria_folder(NAME SOURCES... [COLD sources...] [SMALL] [EXCEPTIONS] [LINKS targets...] [PRIVATE_LINKS targets...])
# Makes the library cria_NAME from the sources in this folder, whose headers are included as "NAME/header.h". If NAME
# is outer/inner, the library is cria_outer_inner. COLD sources run at most once in a start, are compiled for size, and
# belong to a target of their own, so that they can be compiled together. With SMALL, all sources are like this. The
# library's headers may include headers of
# LINKS, its sources also those of PRIVATE_LINKS. Without EXCEPTIONS, the library has neither exceptions nor RTTI.
function(cria_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SMALL;EXCEPTIONS" "" "COLD;LINKS;PRIVATE_LINKS")
  string(REPLACE "/" "_" target cria_${name})
  cria_include_root(include_root ${CMAKE_CURRENT_SOURCE_DIR} ${name})
  add_library(${target} STATIC ${arg_UNPARSED_ARGUMENTS})
  set(parts ${target})
  set(small)
  if(arg_SMALL)
    set(small ${target})
  elseif(arg_COLD)
    set(small ${target}_cold)
    add_library(${small} OBJECT ${arg_COLD})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${small}>)
    list(APPEND parts ${small})
  endif()
  if(small)
    set_target_properties(${small} PROPERTIES UNITY_BUILD "${unity_build}")
    target_compile_options(${small} PRIVATE ${cria_small})
  endif()
  foreach(part IN LISTS parts)
    target_include_directories(${part} PUBLIC ${include_root})
    target_link_libraries(${part} PUBLIC ${arg_LINKS} PRIVATE cria_options ${arg_PRIVATE_LINKS})
    if(NOT arg_EXCEPTIONS)
      target_compile_options(${part} PRIVATE ${cria_no_exceptions})
    endif()
    if(arg_EXCEPTIONS AND part STREQUAL small)
      cria_precompile(${part} cria_program_headers)
    elseif(part STREQUAL small)
      cria_precompile(${part} cria_cold_headers)
    elseif(NOT arg_EXCEPTIONS)
      cria_precompile(${part} cria_hot_headers)
    endif()
  endforeach()
endfunction()
