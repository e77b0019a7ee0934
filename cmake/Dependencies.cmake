# The libraries and tools that Cria needs, as imported targets. Debian 13 has all of them
# (the lists in toolchains/).

find_package(Threads REQUIRED)

# cria_need_found(NAME VARIABLE): fails with a sentence if VARIABLE says that NAME was not found.
function(cria_need_found name variable)
  if(ANDROID AND NOT ${variable})
    message(FATAL_ERROR "There is no ${name} for this NDK in the folders of CMAKE_PREFIX_PATH: build and install "
                        "it as platforms/android/README.md says.")
  elseif(NOT ${variable})
    message(FATAL_ERROR "There is no ${name}: run `./dev build`, or install the packages of "
                        "debian-cria-packages.txt, debian-packages.txt, debian-cria-device-packages.txt and "
                        "debian-device-packages.txt in toolchains/.")
  endif()
endfunction()

# cria_find_library(NAME HEADER LIBRARY): makes the imported target cria::NAME for a library that has
# neither a CMake package nor a pkg-config file.
function(cria_find_library name header library)
  find_path(CRIA_${name}_INCLUDE_DIR ${header})
  cria_need_found(${header} CRIA_${name}_INCLUDE_DIR)
  find_library(CRIA_${name}_LIBRARY ${library})
  cria_need_found(lib${library} CRIA_${name}_LIBRARY)
  add_library(cria::${name} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(cria::${name} INTERFACE ${CRIA_${name}_LIBRARY})
  if(NOT CRIA_${name}_INCLUDE_DIR STREQUAL "${CMAKE_SYSROOT}/usr/include")
    target_include_directories(cria::${name} SYSTEM INTERFACE ${CRIA_${name}_INCLUDE_DIR})
  endif()
endfunction()

cria_find_library(xnnpack xnnpack.h XNNPACK)
if(CRIA_xnnpack_LIBRARY MATCHES "\\.a$")
  # A static XNNPACK may have its kernels in a separate archive.
  find_library(CRIA_xnnpack_KERNELS_LIBRARY microkernels-prod)
  if(CRIA_xnnpack_KERNELS_LIBRARY)
    target_link_libraries(cria::xnnpack INTERFACE ${CRIA_xnnpack_KERNELS_LIBRARY})
  endif()
endif()
# XNNPACK's header includes pthreadpool's, and a static XNNPACK needs its library.
cria_find_library(pthreadpool pthreadpool.h pthreadpool)
target_link_libraries(cria::xnnpack INTERFACE cria::pthreadpool)
cria_find_library(cpuinfo cpuinfo.h cpuinfo)
cria_find_library(highway hwy/highway.h hwy)
cria_find_library(flatbuffers flatbuffers/flatbuffers.h flatbuffers)
cria_find_library(pcre2 pcre2.h pcre2-8)
cria_find_library(utf8proc utf8proc.h utf8proc)
find_program(CRIA_FLATC flatc)
cria_need_found(flatc CRIA_FLATC)
find_path(CRIA_XXHASH_INCLUDE_DIR xxhash.h)
cria_need_found(xxhash.h CRIA_XXHASH_INCLUDE_DIR)
if(CRIA_BUILD_PROGRAMS)
  cria_find_library(libedit histedit.h edit)
  cria_find_library(microhttpd microhttpd.h microhttpd)
  find_package(nlohmann_json REQUIRED)
  find_program(CRIA_GZIP gzip REQUIRED)
  # Without MPI, there is no cria-mpi. pkg-config is asked, because MPI's compiler wrappers know only the machine's own
  # processor.
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(CRIA_OPENMPI QUIET IMPORTED_TARGET GLOBAL ompi-c)
    pkg_check_modules(CRIA_MPICH QUIET IMPORTED_TARGET GLOBAL mpich)
    # Before OpenMPI has connected the ranks, only its PMIx can tell which of them is missing.
    pkg_check_modules(CRIA_PMIX QUIET IMPORTED_TARGET GLOBAL pmix)
    if(TARGET PkgConfig::CRIA_PMIX)
      # Debian's wants a search path in the program, although the library is where the loader looks.
      set_property(TARGET PkgConfig::CRIA_PMIX PROPERTY INTERFACE_LINK_OPTIONS)
    endif()
  endif()
endif()
if(CRIA_BUILD_CONVERTER)
  find_package(Protobuf REQUIRED)
  cria_find_library(curl curl/curl.h curl)
  cria_find_library(crypto openssl/evp.h crypto)
  find_path(CRIA_EIGEN_INCLUDE_DIR Eigen/Core PATH_SUFFIXES eigen3)
  cria_need_found(Eigen CRIA_EIGEN_INCLUDE_DIR)
endif()
if(CRIA_BUILD_TESTS)
  find_package(GTest REQUIRED)
  cria_find_library(vterm vterm.h vterm)
endif()
