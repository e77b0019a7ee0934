# cmake -D VERSION=... -D ROOT=FOLDER -D FOLDERS=NAME;... -D INPUT=... -D OUTPUT=... -P make_private_map.cmake: makes the
# map of private symbols. The name of their version has a hash of all headers in FOLDERS of ROOT, names and contents: a
# program that was compiled with other headers, whose structs may differ, is refused when it is loaded.
set(hashes)
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE headers RELATIVE ${ROOT} ${ROOT}/${folder}/*.h)
  list(SORT headers)
  foreach(header IN LISTS headers)
    file(SHA256 ${ROOT}/${header} hash)
    string(APPEND hashes "${header} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 HASH "${hashes}")
string(SUBSTRING ${HASH} 0 16 HASH)
configure_file(${INPUT} ${OUTPUT} @ONLY)
# The map must be newer than the headers even if nothing in it has changed.
file(TOUCH ${OUTPUT})
