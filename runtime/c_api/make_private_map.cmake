# cmake -D VERSION=... -D ROOT=FOLDER -D FOLDERS=NAME;... -D NM=... -D USED_BY=FILE;... -D DEFINED_BY=FILE;...
# -D OUTPUT=... -P make_private_map.cmake: makes the map of private symbols, which libcria.so exports in addition to the
# C API, for programs of the same build only: otherwise they would contain a second copy of the runtime. They are not an
# API. They are the functions and tables of cria:: that objects or archives in USED_BY, of which the programs are made,
# use and do not define, and that archives in DEFINED_BY, of which the library is made, define.
#
# The name of their version has a hash of all headers in FOLDERS of ROOT, names and contents, and of the symbols: a
# program that was compiled with other headers, whose structs may differ, or that uses other functions, is refused when it
# is loaded.
cmake_minimum_required(VERSION 3.25)

# Sets VARIABLE to the mangled names of cria:: in FILES that have one of the TYPES of nm's.
function(symbols_of variable types files)
  set(names)
  if(files)
    execute_process(COMMAND ${NM} --extern-only --format=posix ${files} OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "\n_Z[A-Za-z0-9_.]*4cria[A-Za-z0-9_.]* ${types}" names "\n${lines}")
    list(TRANSFORM names REPLACE "\n| .*" "")
    list(REMOVE_DUPLICATES names)
  endif()
  set(${variable} ${names} PARENT_SCOPE)
endfunction()

set(defined_types [A-TV-Za-ux-z])
symbols_of(used U "${USED_BY}")
symbols_of(own ${defined_types} "${USED_BY}")
symbols_of(offered ${defined_types} "${DEFINED_BY}")
foreach(name IN LISTS own)
  set(is_own_${name} TRUE)
endforeach()
foreach(name IN LISTS offered)
  set(is_offered_${name} TRUE)
endforeach()
set(symbols)
list(SORT used)
foreach(name IN LISTS used)
  if(is_offered_${name} AND NOT is_own_${name})
    string(APPEND symbols "    ${name};\n")
  endif()
endforeach()

set(hashes "${symbols}")
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE headers RELATIVE ${ROOT} ${ROOT}/${folder}/*.h)
  list(SORT headers)
  foreach(header IN LISTS headers)
    file(SHA256 ${ROOT}/${header} hash)
    string(APPEND hashes "${header} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
# If nothing in the map has changed, it stays as old as it is, and the library is not linked again.
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "CRIA_PRIVATE_${VERSION}_${hash} {\n  global:\n${symbols}};\n")
