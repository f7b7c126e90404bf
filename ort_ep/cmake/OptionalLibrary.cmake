# What a build without compiler or headers needs: a language that may be absent, and a note of what was built and why not.
include(CheckLanguage)

# Enables C++, or puts into the named variable why it cannot be enabled.
macro(optional_cxx reason)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
  else()
    set(${reason} "no C++ compiler was found")
  endif()
endmacro()

# Writes why the library is absent, or nothing, where Python finds it.
function(record_outcome reason)
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/build_outcome.txt" "${reason}")
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/build_outcome.txt" DESTINATION retouch/ort_ep)
endfunction()
